"""What was told and is otherwise now: it is told again, to those who were away too, or they are
told to look again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.readers.test_gemini import HEADER, gemini, user
from tests.agents.readers.test_opencode import Writer
from tests.pages.sessions import standing
from tests.server.test_stream import Message, begun, events, listening, said, spoken, texts
from tests.server.wire import served
from tests.story.links.workshop import Agent, Clock, Repo, body
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.live.feed import Feed, FeedItem
from whyfor.live.hub import _differ
from whyfor.model.status import LiveStatus
from whyfor.service.forget import ForgetArguments, forget
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.service.unlink import unlink
from whyfor.store.sql import changes


@pytest.fixture
def opencode(home: Path) -> Iterator[Writer]:
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    writer = Writer(folder / "opencode.db")
    writer.session()
    writer.user("m1")
    writer.part("p1", "m1", "text", text="Fix it.")
    writer.assistant("m2")
    writer.part("p2", "m2", "text", text="I look")
    yield writer
    writer.db.close()


def told(messages: Iterator[Message], kind: str) -> Message:
    """The next of a kind."""
    for message in messages:
        assert kind == "reset" or message.get("event") != "reset"
        if message.get("event") == kind:
            return message
    raise AssertionError


# -- events --------------------------------------------------------------------------------------


def test_a_message_that_is_completed_later_is_told_again(
    settings: Settings, opencode: Writer
) -> None:
    ingest(settings)
    with served(settings) as server:
        start = str(server.hub.cursor)
        with listening(server, "?kind=assistant.message") as messages:
            begun(messages)
            opencode.part("p2", "m2", "text", text="I looked, and it is fixed.")
            ingest(settings)
            (message,) = events(messages, 1)
            assert (message.told["text"], message.told["changed"]) == (
                "I looked, and it is fixed.",
                True,
            )
            path = f"/api/v1/sessions/opencode/ses_1/events?after={message.told['seq'] - 1}"
            assert server.get(path).json["items"][0]["text"] == "I looked, and it is fixed."
            opencode.user("m3")
            opencode.part("p3", "m3", "text", text="Thanks.")
            opencode.assistant("m4")
            opencode.part("p4", "m4", "text", text="Gladly.")
            ingest(settings)
            (new,) = events(messages, 1)
            assert (new.told["text"], new.told["changed"]) == ("Gladly.", False)
        # who was away all the time
        with listening(server, "?kind=assistant.message", last=start) as messages:
            found = events(messages, 2)
            assert sorted(texts(found)) == ["Gladly.", "I looked, and it is fixed."]
        with listening(server, last=new["id"]) as messages:  # who has heard of it
            spoken(settings, settings.user_home, ("a", ["x"]))
            assert texts(events(messages, 1)) == ["x"]


def test_a_document_that_is_written_anew_tells_only_what_is_otherwise(
    settings: Settings, home: Path
) -> None:
    path = home / ".gemini" / "tmp" / "ab12" / "chats" / "session-2026-05-01T10-00-5e551011.json"
    path.parent.mkdir(parents=True)
    path.write_text(
        json.dumps({**HEADER, "messages": [user("m1", "Fix it."), gemini("m2", "I lo")]})
    )
    ingest(settings)
    with served(settings) as server, listening(server) as messages:
        begun(messages)
        more = [user("m1", "Fix it."), gemini("m2", "I look."), gemini("m3", "Done.")]
        path.write_text(json.dumps({**HEADER, "messages": more}))
        ingest(settings)
        found = [(event.told["text"], event.told["changed"]) for event in events(messages, 2)]
        assert found == [("Done.", False), ("I look.", True)]


def test_too_many_changes_to_keep_are_not_passed_over(
    settings: Settings, opencode: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "KEPT", 2)
    monkeypatch.setattr(changes, "_SPARE", 0)
    for number in range(5):
        opencode.part(f"q{number}", "m2", "text", text=f"{number}")
    ingest(settings)
    with served(settings) as server:
        start = str(server.hub.cursor)
        for number in range(5):
            opencode.part(f"q{number}", "m2", "text", text=f"{number} is otherwise")
        ingest(settings)
        with listening(server, last=start) as messages:
            assert told(messages, "reset")["id"] == str(server.hub.cursor)


# -- stories -------------------------------------------------------------------------------------


def test_a_commit_is_told_when_it_gets_its_story_and_when_it_loses_it(
    settings: Settings, home: Path, tmp_path: Path
) -> None:
    repo = Repo.made(tmp_path / "shop", Clock())
    agent = Agent("mole", repo)
    agent.prompt("please add apples to the shop")
    agent.write("apples.py", body("apples"))
    sha = agent.commit("Add apples")
    name = f"claude:{agent.session_id}"
    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server:
        start = str(server.hub.cursor)
        with listening(server) as messages:
            begun(messages)
            agent.save(home)
            ingest(settings)
            message = told(messages, "commit")
            item = server.get(f"/api/v1/commits/{sha}").json
            (part,) = message.told["sessions"]
            assert message.told | {"sessions": 1} == {
                "project": server.get("/api/v1/projects").json["items"][0]["identity"],
                "commit": sha,
                "subject": "Add apples",
                "checkpoint": item["checkpoint"]["id"],
                "evidence": "output",
                "superseded_by": None,
                "sessions": 1,
            }
            known = item["checkpoint"]["sessions"][0]
            assert (part["session"], part["from"], part["to"]) == (name, known["from"], known["to"])
            repo.git("commit", "-q", "--amend", "-m", "Add apples, green ones")
            agent.say("It has another message now.")
            agent.save(home)
            ingest(settings)
            again = {
                found["commit"]: found
                for found in (told(messages, "commit").told for _ in range(2))
            }
            assert (again[sha]["superseded_by"], again[repo.head]["subject"]) == (
                repo.head,
                "Add apples, green ones",
            )
            unlink(settings, repo.path, repo.head, None)
            gone = next(
                found
                for found in (told(messages, "commit") for _ in range(9))
                if not found.told["checkpoint"]
            )
            assert (gone.told["commit"], gone.told["sessions"]) == (repo.head, [])
            assert gone.told["project"] == message.told["project"]
        for wanted in (f"?session={name}", f"?kind=commit&project={message.told['project']}"):
            # the one that lost it, too, was told of both
            with listening(server, wanted, last=start) as messages:
                assert {told(messages, "commit").told["commit"] for _ in range(2)} == {
                    sha,
                    repo.head,
                }
        with listening(
            server, f"?session=claude:{Transcript('a').session_id}", last=start
        ) as messages:
            spoken(settings, home, ("a", ["x", "y"]))
            assert said(messages).told["text"] == "y"  # nothing of another's commit


# -- places that are lost ------------------------------------------------------------------------


def test_who_was_away_while_something_was_forgotten_is_told_to_look_again(
    settings: Settings, home: Path
) -> None:
    """Also if it was in the middle of a session, so that nothing became shorter."""
    spoken(settings, home, ("a", ["x", "a heron stands here", "y"]), ("b", ["z"]))
    with served(settings) as server:
        start = str(server.hub.cursor)
        forget(settings, home, ForgetArguments(match="heron"))
        with listening(server, last=start) as messages:
            again = told(messages, "reset")["id"]
        forget(settings, home, ForgetArguments(reference=f"claude:{Transcript('b').session_id}"))
        with listening(server, last=again) as messages:
            last = told(messages, "reset")["id"]
            spoken(settings, home, ("a", ["x", "a heron stands here", "y", "w"]))
            assert texts(events(messages, 1)) == ["w"]
    # the same by another server
    with served(settings) as server, listening(server, last=last) as messages:
        assert texts(events(messages, 1)) == ["w"]


def test_a_store_that_was_lost_and_made_again_is_another_place(
    settings: Settings, home: Path
) -> None:
    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server, listening(server) as messages:
        begun(messages)
        start = str(server.hub.cursor)
        for path in settings.home.glob("whyfor.db*"):
            path.unlink()
        rebuild(settings)
        told(messages, "reset")
        with listening(server, last=start) as others:
            told(others, "reset")


def test_an_id_of_an_older_server_is_understood(settings: Settings, home: Path) -> None:
    spoken(settings, home, ("a", ["x"]))
    with served(settings) as server:
        old = str(server.hub.cursor).rpartition("-")[0]
        with listening(server, last=old) as messages:
            spoken(settings, home, ("a", ["x", "y"]))
            assert texts(events(messages, 1)) == ["y"]


def test_while_nobody_listens_nothing_is_read(
    settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    news = Feed.news

    def noted(self: Feed, limit: int) -> list[FeedItem]:
        read.append(limit)
        return news(self, limit)

    monkeypatch.setattr(Feed, "news", noted)
    with served(settings) as server:
        start = str(server.hub.cursor)
        spoken(settings, home, ("a", ["x", "y"]))  # all history: the store is new
        deadline = time.monotonic() + 10
        while str(server.hub.cursor) == start and time.monotonic() < deadline:
            time.sleep(0.005)
        place = server.hub.cursor
        assert (read, list(server.hub._ring)) == ([], [])
        with listening(server) as messages:
            begun(messages)
            spoken(settings, home, ("a", ["x", "y", "z"]))
            assert texts(events(messages, 1)) == ["z"]
        with listening(server, last=str(place)) as messages:
            assert texts(events(messages, 1)) == ["z"]
        with listening(server, last=start) as messages:
            assert texts(events(messages, 3)) == ["x", "y", "z"]


# -- standings -----------------------------------------------------------------------------------


def test_another_branch_or_project_alone_is_news() -> None:
    def on(**facts: Any) -> LiveStatus:
        return standing("s", "running", status={"since": 1, "heard_at": 2}, **facts)

    before = on(started_at=1, ended_at=2)
    assert not _differ(before, on(started_at=1, ended_at=3))
    for facts in ({"branch": "topic"}, {"project": "example.com/else"}, {"title": "Another"}):
        assert _differ(before, on(**facts)), facts
