"""Every session of the corpus that an agent could resume is restored, and read back it says the
same."""

from __future__ import annotations

from pathlib import Path

from tests.service.restore.helpers import bring_back, lines
from whyfor import config
from whyfor.agents import AGENTS
from whyfor.model.errors import NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.query import Filters, SessionFilter
from whyfor.model.sessions import Session
from whyfor.service.ingest import ingest
from whyfor.service.restore import RestoredSource, RestoreReport
from whyfor.service.stats import stats
from whyfor.store.open import OpenStore, reading

TOLD = ("user.prompt", "assistant.message", "tool.call", "tool.result")


def test_a_restored_session_says_what_the_original_says(corpus: Path, cwd: Path) -> None:
    settings = config.load()
    ingest(settings, [corpus])
    with reading(settings) as library:
        found = library.sessions.matching(Filters(), limit=None, subagents=False)
    before = stats(settings, SessionFilter()).tokens
    made = {
        s.id: (s, restored)
        for s in found
        if AGENTS[s.agent].writer() and (restored := try_restore(s, cwd))
    }
    assert {session.agent for session, _ in made.values()} == {
        "claude",
        "codex",
        "copilot",
        "gemini",
    }
    ingest(settings)

    assert stats(settings, SessionFilter()).tokens == before
    with reading(settings) as library:
        for session, restored in made.values():
            assert lines(restored.path)
            copy = library.sessions.find(restored.session_id, session.agent)
            assert told(library, session) == told(library, copy), session.session_id


def try_restore(session: Session, cwd: Path) -> RestoreReport | None:
    try:
        return bring_back(
            cwd, RestoredSource(session.agent, session.session_id), agent=session.agent
        )
    except NotFound:
        assert session.messages == 0, "only what has no messages cannot be resumed"
        return None


def told(library: OpenStore, session: Session) -> list[tuple[str, str]]:
    """The conversation; a last call that never got its result is not restored, so none without
    one is compared."""
    events = [
        event
        for event in library.conversation.events(session.id)
        if event.kind in TOLD and not _apart(event)
    ]
    answered = {ident(event) for event in events if event.kind == "tool.result"}
    return [(e.kind, e.text) for e in events if e.kind != "tool.call" or ident(e) in answered]


def ident(event: StoredEvent) -> object:
    return (event.data or {}).get("id")


def _apart(event: StoredEvent) -> bool:
    """A large result that lies beside the transcript."""
    data = event.data or {}
    return bool(data.get("external")) and "uuid" not in data
