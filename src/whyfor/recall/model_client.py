"""One question to a model: over an OpenAI-compatible or Anthropic-compatible URL, or to a program.

Nothing is tried twice, no redirect is followed (the key would go along), and neither a slow nor an
endless answer keeps anybody waiting for longer than the settings say.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, cast

import msgspec

from whyfor.model.errors import WhyforError
from whyfor.recall.model_settings import ModelSettings

OUTPUT_TOKENS = 1_200  # that an answer may have
_BYTES_MAX = 1 << 20
_ANTHROPIC_VERSION = "2023-06-01"


class ModelUnreachable(WhyforError):
    """Nobody was asked: the server or the program is not there, or the key is missing."""

    kind = "model"


class ModelFailed(WhyforError):
    """The model was asked, and there is no answer that can be used."""

    kind = "model"


class ModelAnswer(msgspec.Struct, frozen=True):
    text: str
    sent: int | None = None  # tokens; None: it did not say
    received: int | None = None


def ask_model(
    wished: ModelSettings, env: Mapping[str, str], folder: Path, rules: str, question: str
) -> ModelAnswer:
    """Ask once and return the answer; raises ModelUnreachable or ModelFailed. A program runs in
    `folder`."""
    if wished.api == "command":
        return _run(wished, env, folder, f"{rules}\n\n{question}")
    path, headers, body = _request(wished, env, rules, question)
    answer = post_json(wished.url.rstrip("/") + path, headers, body, wished.seconds)
    try:
        return _ANSWERS[wished.api](msgspec.json.decode(answer))
    except (msgspec.DecodeError, KeyError, IndexError, TypeError, AttributeError):
        raise ModelFailed(f"{wished.url} did not answer as the {wished.api} API does") from None


def _request(
    wished: ModelSettings, env: Mapping[str, str], rules: str, question: str
) -> tuple[str, dict[str, str], dict[str, Any]]:
    key = env.get(wished.key_env, "") if wished.key_env else ""
    if wished.key_env and not key:
        raise ModelUnreachable(f"${wished.key_env} is empty", "It should hold the model's key.")
    asked = {"role": "user", "content": question}
    if wished.api == "anthropic":
        headers = {"anthropic-version": _ANTHROPIC_VERSION, "x-api-key": key}
        body = {"max_tokens": OUTPUT_TOKENS, "system": rules, "messages": [asked]}
        return "/v1/messages", headers, {"model": wished.name, **body}
    headers = {"authorization": f"Bearer {key}"} if key else {}
    messages = [{"role": "system", "content": rules}, asked]
    body = {"max_completion_tokens": OUTPUT_TOKENS, "messages": messages}
    return "/chat/completions", headers, {"model": wished.name, **body}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def post_json(url: str, headers: dict[str, str], body: dict[str, Any], seconds: float) -> bytes:
    """Send JSON and return what is answered; raises ModelUnreachable or ModelFailed."""
    request = urllib.request.Request(
        url, msgspec.json.encode(body), {"content-type": "application/json", **headers}
    )
    end = time.monotonic() + seconds
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=seconds) as response:
            return _body(cast(HTTPResponse, response), end)
    except urllib.error.HTTPError as error:
        error.close()
        raise ModelFailed(f"{url} answered {error.code} {error.reason}") from None
    except TimeoutError:
        raise ModelFailed(f"{url} did not answer in {seconds:.0f} s") from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise ModelFailed(f"{url} did not answer in {seconds:.0f} s") from None
        raise ModelUnreachable(f"cannot reach {url}: {error.reason}", "Is it running?") from None
    except (OSError, HTTPException) as error:
        raise ModelFailed(f"{url} broke off: {error}") from None


def _body(response: HTTPResponse, end: float) -> bytes:
    """Read to the end, but neither for ever nor without limit."""
    parts: list[bytes] = []
    size = 0
    while part := response.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > _BYTES_MAX:
            raise ModelFailed(f"the answer has more than {_BYTES_MAX} bytes")
        if time.monotonic() > end:
            raise TimeoutError
    return b"".join(parts)


def _openai(answer: dict[str, Any]) -> ModelAnswer:
    usage = answer.get("usage") or {}
    return ModelAnswer(
        _text(answer["choices"][0]["message"]["content"]),
        _number(usage.get("prompt_tokens")),
        _number(usage.get("completion_tokens")),
    )


def _anthropic(answer: dict[str, Any]) -> ModelAnswer:
    usage = answer.get("usage") or {}
    texts = [part["text"] for part in answer["content"] if part["type"] == "text"]
    return ModelAnswer(
        _text("".join(texts)),
        _number(usage.get("input_tokens")),
        _number(usage.get("output_tokens")),
    )


_ANSWERS = {"openai": _openai, "anthropic": _anthropic}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _run(wished: ModelSettings, env: Mapping[str, str], folder: Path, text: str) -> ModelAnswer:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        program = subprocess.Popen(
            wished.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        what = error.strerror or error
        raise ModelUnreachable(f"cannot run {wished.command[0]}: {what}") from None
    with program:
        try:
            answer, _ = program.communicate(text.encode("utf-8", "replace"), wished.seconds)
        except subprocess.TimeoutExpired:
            raise ModelFailed(
                f"{wished.command[0]} did not answer in {wished.seconds:.0f} s"
            ) from None
        finally:
            _end(program)
    if program.returncode:
        raise ModelFailed(f"{wished.command[0]} ended with {program.returncode}")
    return ModelAnswer(answer[:_BYTES_MAX].decode("utf-8", "replace"))


def _end(program: subprocess.Popen[bytes]) -> None:
    """End the program and what it started, if any of it is left."""
    try:
        os.killpg(program.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
