"""Notices to a person: once per change, without secrets, never through a shell, never in the
loop's way."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import REPOSITORY, Result
from tests.pages.sessions import asking, now, standing
from tests.transcripts import Transcript
from whyfor import config
from whyfor.config import Settings
from whyfor.live import notify as notifying
from whyfor.live.notify import NoticeFinder, Notification, Notifier, NotifySettings
from whyfor.model.attention import Firing
from whyfor.model.status import LiveStatus, PendingApproval, Summary
from whyfor.privacy.samples import expand
from whyfor.service.doctor import examine
from whyfor.story.summary import NOTHING_YET

# Appends what it was told as a line of JSON: one write, so that two at once do not mix.
_WRITER = """
import json, os, sys
mine = "WHYFOR_NOTIFY_"
told = {name[len(mine):].lower(): value for name, value in os.environ.items() if name.startswith(mine)}
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(told) + "\\n")
"""


class Quiet:
    def __init__(self) -> None:
        self.trouble: str | None = None
        self.standings: list[LiveStatus] = []

    def publish(self) -> None: ...

    def stand(self, standings: Any) -> None:
        self.standings = list(standings)

    def attend(self, firings: list[Firing], told: list[Firing]) -> None: ...


class Told:
    """A command that writes down what it is told, and one who watches."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.file = folder / "told.jsonl"
        self.program = folder / "tell.py"
        self.program.write_text(_WRITER)
        self.settings = settings
        self.said: list[str] = []
        self.looked_at: set[str] = set()
        self.configure([sys.executable, str(self.program), str(self.file)])
        self.hub = Quiet()
        self.watcher = Notifier(settings, self.hub, self.said.append, lambda: self.looked_at)
        self.stand()  # what stands when somebody begins to watch is no change

    def configure(self, command: list[str], more: str = "") -> None:
        self.settings.home.mkdir(parents=True, exist_ok=True)
        (self.settings.home / "config.toml").write_text(
            f"[notify]\ncommand = {json.dumps(command)}\n{more}\n"
        )

    def stand(self, *standings: LiveStatus) -> None:
        self.watcher.stand(standings)

    def all(self) -> list[dict[str, str]]:
        """Everything, when the last one is told."""
        self.watcher.close()
        return (
            [json.loads(line) for line in self.file.read_text().splitlines()]
            if self.file.exists()
            else []
        )

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end, self.said
            time.sleep(0.01)

    def count(self, number: int) -> list[dict[str, str]]:
        self.until(lambda: self.file.exists() and self.file.read_text().count("\n") >= number)
        return self.all()


@pytest.fixture
def told(settings: Settings, tmp_path: Path) -> Told:
    return Told(settings, tmp_path)


def fresh(ident: str, phase: str, **status: Any) -> LiveStatus:
    return standing(ident, phase, status={"since": now(), **status})


def asks(ident: str, action: str, at: int | None = None, **facts: Any) -> LiveStatus:
    at = at or now()
    approval = PendingApproval("permission", at, "Bash", action, certain=True)
    return asking(ident, action, status={"since": at, "approval": approval}, **facts)


# -- what is told --------------------------------------------------------------------------------


def test_a_request_is_told_once_however_often_it_is_heard_of(told: Told) -> None:
    request = asks("shop", "make deploy", title="Deploy it")
    told.stand(fresh("shop", "running"))
    for _ in range(5):
        told.stand(request)
    told.stand(fresh("shop", "running"))
    told.stand(request)  # of before: the same moment, judged anew
    (notice,) = told.count(1)
    assert notice == {
        "status": "waiting_approval",
        "session": "claude:shop",
        "project": "example.com/acme/checkout",
        "title": "Deploy it",
        "text": "Bash: make deploy",
        "level": "act",
    }


def test_a_notice_waits_for_the_record_and_then_says_what_was_said(
    told: Told, home: Path, cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook is ahead of the transcript: nothing of the session was read yet."""
    monkeypatch.setattr(notifying, "RECORDED", 30.0)
    talk = Transcript("s1", cwd="/code/garden")
    talk.prompt("Plant a fern")
    talk.say("The fern stands.")
    unread = {"title": None, "project": None, "cwd": None}
    told.stand(fresh(talk.session_id, "running"))
    nothing = Summary("waiting", NOTHING_YET, "none")
    ended = standing(talk.session_id, "waiting", status={"since": now()}, **unread)
    told.stand(msgspec.structs.replace(ended, summary=nothing))
    talk.save(home)
    assert cli("ingest").code == 0
    (notice,) = told.count(1)
    assert notice["title"] == "Plant a fern"
    assert "The fern stands" in notice["text"]
    assert notice["project"] == "garden"


def test_a_notice_waits_for_the_closing_words_of_the_turn(
    told: Told, home: Path, cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the turn before ended with, or a command in the middle, is not what it says now."""
    monkeypatch.setattr(notifying, "RECORDED", 30.0)
    talk = Transcript("s1", cwd="/code/garden")
    talk.prompt("Plant a fern")
    talk.say("The fern stands.")
    talk.prompt("Water it")
    talk.save(home)
    assert cli("ingest").code == 0
    stale = Summary("waiting", "The fern stands", "Water it")
    told.stand(fresh(talk.session_id, "running"))
    ended = standing(talk.session_id, "waiting", status={"since": now()})
    told.stand(msgspec.structs.replace(ended, summary=stale))
    talk.say("It drips.")
    talk.save(home)
    assert cli("ingest").code == 0
    (notice,) = told.count(1)
    assert notice["text"] == "It drips; The fern stands"


def test_a_notice_does_not_wait_for_ever_and_never_says_nothing_yet(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifying, "RECORDED", 0.2)
    told.stand(fresh("shop", "running"))
    ended = standing("shop", "waiting", status={"since": now()}, title=None)
    told.stand(msgspec.structs.replace(ended, summary=Summary("waiting", NOTHING_YET, "none")))
    (notice,) = told.count(1)
    assert notice["text"] == "What it said was not recorded."


def test_the_next_request_is_told_too(told: Told) -> None:
    told.stand(asks("shop", "make one", now() - 10_000))
    told.stand(asks("shop", "make two", now()))
    assert [notice["text"] for notice in told.count(2)] == ["Bash: make one", "Bash: make two"]


def test_what_stood_before_and_what_is_old_is_no_news(settings: Settings, tmp_path: Path) -> None:
    told = Told(settings, tmp_path)
    told.watcher = Notifier(settings, told.hub, told.said.append)
    told.stand(asks("before", "ls"))
    told.stand(asks("before", "ls"), asks("found late", "ls", now() - 600_000))
    told.stand(fresh("new", "waiting"))
    assert [notice["session"] for notice in told.count(1)] == ["claude:new"]
    told.watcher.close()


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ({"phase": "running"}, {"phase": "waiting"}, "waiting"),
        ({"phase": "running"}, {"phase": "waiting", "questions": ["Which?"]}, "waiting"),
        ({"phase": "running"}, {"phase": "waiting", "failed": "overloaded"}, "failed"),
        ({"phase": "running"}, {"phase": "exited", "failed": "overloaded"}, "failed"),
        ({"phase": "waiting_approval"}, {"phase": "waiting"}, "waiting"),
        ({"phase": "running", "since": -400_000}, {"phase": "waiting"}, "finished"),
        ({"phase": "running", "since": -400_000}, {"phase": "exited"}, "finished"),
        (
            {"phase": "running", "since": -400_000},
            {"phase": "waiting", "questions": ["Which?"]},
            "waiting",
        ),
        ({"phase": "running"}, {"phase": "waiting", "interrupted": True}, None),
        ({"phase": "running"}, {"phase": "exited"}, None),
        ({"phase": "running"}, {"phase": "unknown"}, None),
        ({"phase": "waiting"}, {"phase": "exited"}, None),
        ({"phase": "waiting"}, {"phase": "idle"}, None),
    ],
)
def test_each_change_has_its_word(
    before: dict[str, Any], after: dict[str, Any], status: str | None
) -> None:
    changes, wished, start = NoticeFinder(), NotifySettings(command=["x"]), now()
    changes.among([])
    changes.among(
        [
            standing(
                "s", status={"since": start + before.get("since", -9_000)}, phase=before["phase"]
            )
        ]
    )
    phase = after.pop("phase")
    found = changes.among([standing("s", phase, status={"since": start, **after})])
    told = [notifying._wanted(change, took, wished) for _, change, took in found]
    assert [word for word in told if word] == ([status] if status else [])


def test_a_turn_lasts_through_its_requests(told: Told) -> None:
    start = now()
    told.stand(standing("s", "running", status={"since": start - 400_000}))
    told.stand(asks("s", "make", start - 60_000))
    told.stand(standing("s", "running", status={"since": start - 30_000}))
    told.stand(msgspec.structs.replace(fresh("s", "waiting"), summary=Summary("x", "Made it", "y")))
    assert told.count(2)[1] | {"title": "", "project": ""} == {
        "status": "finished",
        "session": "claude:s",
        "title": "",
        "project": "",
        "text": "After 7 min. Made it",
        "level": "know",
    }


def test_only_what_is_wished_for_is_told(told: Told) -> None:
    told.configure([sys.executable, str(told.program), str(told.file)], 'when = ["failed"]')
    told.stand(asks("a", "ls"), fresh("b", "waiting"), fresh("c", "waiting", failed="overloaded"))
    (notice,) = told.count(1)
    assert (notice["session"], notice["status"], notice["text"]) == (
        "claude:c",
        "failed",
        "overloaded",
    )


def test_a_session_one_looks_at_is_not_told_of(told: Told) -> None:
    told.looked_at = {"claude:a"}
    told.stand(asks("a", "ls"), asks("b", "ls"))
    assert [notice["session"] for notice in told.count(1)] == ["claude:b"]


def test_nothing_is_told_unless_it_is_asked_for(settings: Settings, told: Told) -> None:
    (settings.home / "config.toml").unlink()
    told.stand(asks("a", "ls"))
    assert told.all() == [] and told.said == [] and told.watcher._thread is None


# -- what leaves ---------------------------------------------------------------------------------


def test_secrets_do_not_leave(told: Told) -> None:
    secret = expand("ghp_{A36}")
    told.stand(asks("a", f"curl -H 'Authorization: token {secret}'", title=f"Use {secret}"))
    (notice,) = told.count(1)
    assert (
        secret not in json.dumps(notice)
        and "[REDACTED:" in notice["text"]
        and "[REDACTED:" in notice["title"]
    )


def test_if_redaction_fails_nothing_leaves(settings: Settings, told: Told) -> None:
    with (settings.home / "config.toml").open("a") as file:
        file.write('[[redact.rule]]\nid = "Not Right"\n')
    told.stand(asks("a", "ls"))
    told.until(lambda: bool(told.said))
    assert told.all() == []


def test_words_are_never_a_program(told: Told, tmp_path: Path) -> None:
    bad = (
        f"$(touch {tmp_path}/pwned) `touch {tmp_path}/pwned`; touch {tmp_path}/pwned # "
        "\x00\x1b[31m\udcff -u \n x"
    )
    told.stand(asks("a", bad, title=bad, project=bad), asks("-rf", "x"))
    first, _ = told.count(2)
    assert not (tmp_path / "pwned").exists()
    assert "$(touch" in first["text"] and not any(
        c in json.dumps(first) for c in ("\\u0000", "\\u001b")
    )


def test_the_desktop_gets_words_as_words() -> None:
    words = {
        "project": "acme/shop",
        "title": "-x <b>a</b> & \\n",
        "text": "t",
        "status": "",
        "session": "",
    }
    notice = notifying.Notification("waiting_approval", "", "", "", "")
    argv, _ = notifying._desktop(words, notice)
    at = argv.index("--")
    assert argv[0] == "notify-send" and argv[at + 1] == "Needs approval · shop"
    assert argv[at + 2 :] == ["-x &lt;b&gt;a&lt;/b&gt; &amp; \\\\n – t"]


def test_long_words_are_cut_after_their_secrets_are_gone(told: Told) -> None:
    secret = expand("ghp_{A36}")
    told.stand(asks("a", "x" * (notifying.TEXT_MAX - 20) + " " + secret))
    (notice,) = told.count(1)
    assert len(notice["text"]) <= notifying.TEXT_MAX and secret[:8] not in notice["text"]


# -- what goes wrong -----------------------------------------------------------------------------


def test_a_slow_command_keeps_nobody_waiting_and_is_ended(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifying, "SECONDS", 0.5)
    told.configure([sys.executable, "-c", "import time; time.sleep(60)"])
    begun = time.monotonic()
    for number in range(3 * notifying.WAITING):
        told.stand(asks(f"s{number}", "ls"))
    assert time.monotonic() - begun < 0.5 * notifying.WAITING
    assert len(told.hub.standings) == 1
    told.until(lambda: any("took longer" in words for words in told.said))


def test_a_failure_is_said_once_and_doctor_knows(settings: Settings, told: Told) -> None:
    told.configure(["no-such-program-here"])
    for number in range(3):
        told.stand(asks(f"s{number}", "ls"))
    told.until(lambda: told.watcher._queue.empty() and bool(told.said))
    told.watcher.close()
    assert told.said == [
        "A notification could not be sent: there is no program 'no-such-program-here'"
    ]
    problems = [
        problem.what for problem in examine(config.load()).problems if "notif" in problem.what
    ]
    assert len(problems) == 2 and all("no-such-program-here" in what for what in problems)


def test_what_cannot_be_understood_stops_notices_not_capture(
    settings: Settings, told: Told, cli: Callable[..., Result]
) -> None:
    told.configure(["true"], 'when = ["always"]')
    told.stand(asks("a", "ls"))
    assert len(told.said) == 1 and "[notify]" in told.said[0]
    assert cli("ingest", "--json").code == 0
    assert any(
        "[notify]" in problem["what"] for problem in cli("doctor", "--json").json["problems"]
    )


def test_a_notice_is_what_the_docs_say() -> None:
    page = (REPOSITORY / "docs" / "notifications.md").read_text(encoding="utf-8")
    for name in ("status", "session", "project", "title", "text"):
        assert name in Notification.__struct_fields__ and f"`WHYFOR_NOTIFY_{name.upper()}`" in page
    for name in NotifySettings.__struct_fields__:
        assert f"`{name}`" in page
    for change in notifying.CHANGES:
        assert f"`{change}`" in page
