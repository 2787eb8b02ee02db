"""What agents wrote when they held the conversation of `samples`, as `record.py` kept it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.agents.samples import CLOSING, PROMPT, WORDS, Content, Sample, document, lines, sample

FOLDER = Path(__file__).parent
RECORDED = sorted(path.stem for path in FOLDER.glob("*.json"))
# Where a run says other things than the sample that was written by hand: no fork, no hook's
# context, no title of the model's.
PLAIN: dict[str, Any] = {
    "injected": (),
    "children": (),
    "others": (),
    "forked_from": None,
    "title": None,
}
SPENT = {"input": 2000, "cache_read": 3000, "output": 250}
OTHER: dict[str, dict[str, Any]] = {
    # Resumed in a terminal only: the first request is all there is.
    "cline": {
        "title": PROMPT,
        "prompts": (PROMPT,),
        "answers": (WORDS, CLOSING),
        "tokens": {"input": 1600, "cache_read": 2400, "output": 200},
    },
    # It reads a file before it edits it: one answer more.
    "continue": {
        "tools": (("Write", "write"), ("Read", "read"), ("Edit", "edit"), ("Bash", "shell")),
        "tokens": {"input": 2400, "cache_read": 3600, "output": 300, "reasoning": 30},
    },
    "claude": {"model": "claude-opus-5-5"},
    # These two speak Anthropic's API, which does not tell thoughts apart from output.
    "copilot": {"tokens": SPENT, "model": "claude-sonnet-4", "totals_only": False},
    "opencode": {"tokens": SPENT, "model": "claude-sonnet-4-5", "title": "ok"},
    "droid": {"tokens": SPENT, "title": PROMPT, "model": "custom:Mock-0"},
    "goose": {"title": "quay"},
    "grok": {"title": PROMPT},
    "hermes": {"branch": None},
    "openhands": {"model": "openai/mock-model"},
    "kilo": {"title": "ok"},  # what the model answers to every aside
    # What it learned for its memory cost one more answer, in no conversation.
    "qwen": {"tokens": {"input": 2100, "cache_read": 3000, "output": 260, "reasoning": 25}},
    "vibe": {"branch": None},
}


def version_of(agent: str) -> str:
    return str(_recording(agent)["version"])


def recorded_on(agent: str) -> str:
    """Return the day on which the agent was run."""
    return str(_recording(agent)["on"])


def recorded(agent: str) -> Sample:
    """What an agent wrote, and what must be read of it."""
    kept = _recording(agent)
    session_id = kept["session_id"]
    by_hand = sample(agent)
    files = {name: _content(content) for name, content in kept["files"].items()}
    resume = by_hand.resume and by_hand.resume.replace(by_hand.session_id, session_id)
    told = {**PLAIN, "session_id": session_id, "resume": resume, **OTHER.get(agent, {})}
    return replace(by_hand, files=files, **told)


@cache
def _recording(agent: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{agent}.json").read_text())
    return found


def _content(kept: dict[str, Any]) -> Content:
    if "sql" in kept:
        return [(sql, tuple(values)) for sql, values in kept["sql"]]
    if "lines" in kept:
        return lines(*kept["lines"])
    return document(kept["document"])
