"""`whyfor memory index`, and what a search then finds."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.query import Filters
from whyfor.privacy.samples import expand
from whyfor.recall.embeddings import encoder, index, models
from whyfor.recall.embeddings import settings as semantic
from whyfor.recall.embeddings.encoder import OnnxEncoder
from whyfor.store.open import reading

Cli = Callable[..., Result]
ASKED = "how are repeated authentication attempts slowed down"
SAID = ("Throttle failed logins", "After five wrong passwords the account waits a minute.")
OTHER = ("Draw the logo bigger", "The picture in the header has twice its size now.")


def write(home: Path, name: str, *said: tuple[str, str]) -> Transcript:
    made = Transcript(name)
    for prompt, answer in said:
        made.prompt(prompt)
        made.say(answer)
    made.save(home)
    return made


@pytest.fixture
def sessions(home: Path, cli: Cli) -> list[str]:
    """The ids of two sessions: the first is about logins."""
    ids = [write(home, "login", SAID).session_id, write(home, "logo", OTHER).session_id]
    assert cli("ingest").code == 0
    return ids


def found(cli: Cli, *words: str) -> list[str]:
    result = cli("search", *words, "--json")
    assert result.code == 0, result.err
    return [hit["session_id"] for hit in json.loads(result.out)]


def vectors_of(settings: Settings, model: str = semantic.BUILT_IN_ID) -> dict[int, Any]:
    with reading(settings) as store:
        rows = store.vectors.bits(model, Filters())
        return store.vectors.load(model, [row.session for row in rows])


def test_a_session_is_found_that_says_it_in_other_words(
    model: Path, sessions: list[str], cli: Cli
) -> None:
    assert found(cli, ASKED) == []
    done = cli("memory", "index", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["made"]["sessions"], report["made"]["vectors"]) == (2, 2)
    assert report["state"]["ready"]
    assert report["state"]["waiting"] == 0
    assert report["state"]["model_bytes"] > 20_000_000
    [hit] = json.loads(cli("search", ASKED, "--json").out)
    assert hit["session_id"] == sessions[0]
    assert hit["snippet"].startswith("Throttle failed logins")
    assert hit["passages"][0]["marks"] == []
    assert found(cli, f'"{ASKED}"') == []  # what is quoted must be there
    assert found(cli, ASKED, "--in", "prompts") == []
    assert found(cli, "qwzxv") == []  # no word, so nothing is like it
    shown = cli("memory", "index")
    assert shown.out.splitlines()[0] == "Nothing new."
    assert "Indexed: 2 sessions, 2 turns, 2" in shown.out


def test_words_that_are_there_need_no_model(
    model: Path, sessions: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("memory", "index").code == 0

    def never(*_: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(encoder, "open_encoder", never)
    assert found(cli, "throttle the failed logins") == [sessions[0]]


def test_what_was_interrupted_goes_on_and_only_news_is_made(
    model: Path,
    sessions: list[str],
    home: Path,
    cli: Cli,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index, "SAVED_TEXTS", 1)
    encode = OnnxEncoder.encode
    texts: list[str] = []

    def dies(self: OnnxEncoder, given: Sequence[str]) -> Any:
        texts.extend(given)
        if len(texts) == 2:
            raise KeyboardInterrupt
        return encode(self, given)

    monkeypatch.setattr(OnnxEncoder, "encode", dies)
    with pytest.raises(KeyboardInterrupt):
        index.make_vectors(settings)
    assert len(vectors_of(settings)) == 1
    assert index.make_vectors(settings).sessions == 1
    assert len(vectors_of(settings)) == 2
    texts.clear()
    write(home, "login", SAID, ("And for tokens?", "The same rule holds for them."))
    assert cli("ingest").code == 0
    done = index.make_vectors(settings)
    assert (done.sessions, done.vectors) == (1, 1)  # the first turn has not changed
    assert [text.split("\n")[1] for text in texts] == ["And for tokens?"]


def test_vectors_of_another_model_are_made_again(
    model: Path,
    sessions: list[str],
    cli: Cli,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cli("memory", "index").code == 0
    monkeypatch.setattr(semantic, "BUILT_IN_ID", "newer")
    assert found(cli, ASKED) == []  # those of the old one say nothing
    assert json.loads(cli("doctor", "--json").out)["semantic"]["waiting"] == 2
    assert cli("memory", "index").code == 0
    assert found(cli, ASKED) == [sessions[0]]
    assert vectors_of(settings, model.name) == {}
    assert not model.exists()  # its model went too
    rebuilt = json.loads(cli("memory", "index", "--rebuild", "--limit", "1", "--json").out)
    assert rebuilt["made"]["sessions"] == 1
    assert rebuilt["state"]["waiting"] == 1


def test_forget_leaves_no_byte_of_a_vector(
    model: Path, sessions: list[str], cli: Cli, settings: Settings
) -> None:
    assert cli("memory", "index").code == 0
    kept = {number: made.codes for number, made in vectors_of(settings).items()}
    assert cli("forget", sessions[0], "--yes").code == 0
    left = {number: made.codes for number, made in vectors_of(settings).items()}
    [gone] = [codes for number, codes in kept.items() if number not in left]
    assert len(left) == 1
    files = [path for path in settings.home.iterdir() if path.name.startswith("whyfor.db")]
    for path in files:
        content = path.read_bytes()
        assert gone[:32] not in content
        assert gone[-32:] not in content
    assert next(iter(left.values()))[:32] in b"".join(path.read_bytes() for path in files)
    assert found(cli, ASKED) == []
    assert cli("rebuild").code == 0  # derived: made again on demand
    assert vectors_of(settings) == {}
    assert json.loads(cli("memory", "index", "--json").out)["made"]["sessions"] == 1


def test_a_broken_model_does_not_stop_a_search(
    model: Path, sessions: list[str], cli: Cli, configure: Callable[..., Settings], tmp_path: Path
) -> None:
    assert cli("memory", "index").code == 0
    (model / "model.onnx").write_bytes(b"broken")
    assert found(cli, "throttle logins") == [sessions[0]]
    assert found(cli, ASKED) == []
    told = cli("doctor")
    assert "search by meaning is off: the model in" in told.out
    assert cli("memory", "index").code == 0  # the built-in one is simply made again
    assert found(cli, ASKED) == [sessions[0]]
    configure(model=str(tmp_path / "nowhere"))
    said = cli("memory", "index")
    assert said.code == 2
    assert "there is no model in" in said.err
    assert found(cli, "throttle logins") == [sessions[0]]
    configure(model="https://example.org/v1")
    assert "a URL needs `name`" in cli("memory", "index").err
    assert found(cli, "throttle logins") == [sessions[0]]


def test_without_the_extra_it_is_said_once_what_it_would_add(
    sessions: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(models, "has_packages", lambda *_: False)
    said = cli("memory", "index")
    assert said.code == 2
    assert "[semantic]'" in said.err
    result = cli("search", "throttle", "logins")
    assert "Throttle" in result.out
    assert "semantic" not in result.out + result.err
    told = cli("doctor")
    assert "search by meaning: off" in told.out
    assert "[semantic]'" in told.out
    assert json.loads(cli("doctor", "--json").out)["semantic"]["installed"] is False
    assert not index.wants_background(settings)  # nobody has made the model
    monkeypatch.setattr(index, "has_packages", lambda *_: False)
    assert not index.wants_background(settings)


def test_a_server_indexes_in_the_background_and_an_ingest_what_is_new(
    model: Path, sessions: list[str], home: Path, cli: Cli, settings: Settings
) -> None:
    index.index_after_ingest(settings)
    assert vectors_of(settings) == {}  # nobody has asked for an index yet
    assert index.wants_background(settings)  # the model is there
    stop = threading.Event()
    work = threading.Thread(target=index.index_in_background, args=(settings, stop))
    work.start()
    try:
        for _ in range(600):
            if len(vectors_of(settings)) == 2 or not work.is_alive():
                break
            stop.wait(0.05)
    finally:
        stop.set()
        work.join(20)
    assert len(vectors_of(settings)) == 2
    write(home, "third", ("Bake bread", "The oven is hot."))
    assert cli("ingest", "--background").code == 0
    assert len(vectors_of(settings)) == 3


# -- a model behind a URL ------------------------------------------------------------------------


class Server:
    """Answers with a vector that says whether a text is about logins."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.status = 200
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                told.asked.append(body)
                told.keys.append(self.headers.get("authorization"))
                self.send_response(told.status)
                self.end_headers()
                self.wfile.write(json.dumps(told.answer(body["input"])).encode())

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def answer(self, texts: list[str]) -> dict[str, Any]:
        rows = [
            [1.0, 0.1, 0.0] if "login" in text or "authentication" in text else [0.0, 0.1, 1.0]
            for text in texts
        ]
        listed = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
        return {"data": listed[::-1]}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.server.shutdown()
    made.thread.join()
    made.server.server_close()


def test_a_model_behind_a_url_gets_no_secret(
    built_in: Path,
    home: Path,
    cli: Cli,
    server: Server,
    configure: Callable[..., Settings],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = expand("ghp_{a36}")
    first = write(home, "login", (f"Throttle failed logins with {secret}", "Done."))
    write(home, "logo", OTHER)
    assert cli("ingest").code == 0
    monkeypatch.setenv("OWN_KEY", "k3y")
    configure(model=server.url, name="tiny", key_env="OWN_KEY")
    done = cli("memory", "index", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["made"]["vectors"] == 2
    assert found(cli, ASKED) == [first.session_id]
    sent = json.dumps(server.asked)
    assert secret not in sent
    assert "REDACTED" in sent
    assert {each["model"] for each in server.asked} == {"tiny"}
    assert set(server.keys) == {"Bearer k3y"}
    server.status = 500
    assert found(cli, ASKED) == []
    assert found(cli, "throttle logins") == [first.session_id]
    write(home, "third", ("Bake bread", "The oven is hot."))
    assert cli("ingest").code == 0
    assert "answered 500" in cli("memory", "index").err
    monkeypatch.delenv("OWN_KEY")
    assert "$OWN_KEY is empty" in cli("memory", "index").err
