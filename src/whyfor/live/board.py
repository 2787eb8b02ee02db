"""The Now board: open sessions grouped by status, a preview of each, and whether capture works."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from whyfor.agents import AGENTS, USUAL
from whyfor.capture.pauses import active_pauses, describe_pause
from whyfor.config import Settings
from whyfor.live.approval_text import WHOLE, whole_approval
from whyfor.model.errors import NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.listing import ListFilter
from whyfor.model.paths import is_whole_path, path_within, to_text
from whyfor.model.reports import Paused
from whyfor.model.sessions import Session
from whyfor.model.status import LiveStatus, Status, Summary
from whyfor.model.text import one_line
from whyfor.model.times import wall_clock
from whyfor.model.turns import Turn
from whyfor.store.open import LocalStore, reading_local
from whyfor.store.protocol import Store
from whyfor.story.recent_turns import recent_turns
from whyfor.story.summary import summarise
from whyfor.story.turns import counted_kind

SILENT = 60_000  # ms a hook may be behind the session it should have told of
ROWS = 12  # of what is idle or over, unless more are asked for
OPTIONS = 6
OPTION_MAX = 80
_ORDER = ("waiting_approval", "waiting", "running")


class SessionPreview(msgspec.Struct, frozen=True):
    """A session's last turns, and what came of it."""

    turns: tuple[Turn, ...] = ()
    options: tuple[str, ...] = ()  # of the question it asked last
    commits: int = 0

    @property
    def turn(self) -> Turn | None:
        return self.turns[-1] if self.turns else None

    @property
    def said(self) -> str:
        """The agent's last words in its last turn."""
        return one_line(self.turn.closing) if self.turn and self.turn.closing else ""


class SessionCard(msgspec.Struct, frozen=True):
    session: Session
    status: Status
    pid: int | None
    place: str
    glance: SessionPreview
    summary: Summary
    whole: str = ""  # of what it asks for, if that is long

    @property
    def name(self) -> str:
        return f"{self.session.agent}:{self.session.session_id}"

    @property
    def where(self) -> str:
        """Its project; its folder, before a transcript tells which project that is."""
        return self.session.project or self.place

    @property
    def prompt(self) -> str:
        """What was asked of it last; empty if nothing was, as far as is known."""
        return self.summary.prompt if any(turn.prompt for turn in self.glance.turns) else ""

    @property
    def doing(self) -> tuple[str, str]:
        """What it does now, as a verb and its object."""
        verb, _, rest = (self.status.activity or "working").partition(" ")
        word = verb.removesuffix(":")
        return (word if rest else word.capitalize()), rest

    @property
    def asks(self) -> str:
        """What kind of thing it wants to do: shell, edit, read, …, plan."""
        asked = self.status.approval
        return (
            "plan"
            if asked and asked.kind == "plan"
            else counted_kind(asked.tool or "", self.session.agent)
            if asked
            else ""
        )

    @property
    def wants(self) -> tuple[str, str]:
        """What it would do, exactly: what is shown at once, and the rest of something long."""
        action = self.status.approval.action or "" if self.status.approval else ""
        at = (
            action.rfind("\n", len(action) * 3 // 4) + 1 or len(action)
            if self.whole
            else len(action)
        )
        return action[:at], self.whole[at:]

    @property
    def lacks(self) -> bool:
        """Whether there is more of what it would do than can be shown."""
        asked = self.status.approval
        return bool(asked and asked.cut) and len(self.whole) in (0, WHOLE)

    @property
    def outside(self) -> bool:
        """Whether it wants to reach a file outside of its folder."""
        asked, cwd = self.status.approval, self.session.cwd
        path = asked.path if asked else None
        if not path or not cwd or not is_whole_path(path):
            return False
        return path_within(path, cwd) == path


class AgentCapture(msgspec.Struct, frozen=True):
    """When an agent was last heard from: through its records and through its hooks."""

    agent: str
    record_at: int | None
    hook_at: int | None
    silent: bool  # it began a session since, and no hook told of it

    @property
    def off(self) -> bool:
        return self.record_at is None and self.hook_at is None

    @property
    def heard_at(self) -> int | None:
        return max(filter(None, (self.record_at, self.hook_at)), default=None)


class NowBoard(msgspec.Struct, frozen=True):
    """What the Now page shows. `empty`: nothing was ever captured."""

    groups: dict[str, list[SessionCard]]  # waiting_approval, waiting, running, rest
    agents: list[str]  # to choose from
    projects: list[str]
    health: list[AgentCapture]
    paused: list[Paused]
    last: Session | None = None  # the newest there is, if none is open
    empty: bool = False

    @property
    def open(self) -> list[SessionCard]:
        return [
            card
            for cards in self.groups.values()
            for card in cards
            if card.status.phase != "exited"
        ]


class PreviewCache:
    """Keeps the previews of the sessions shown; each is read again when the session has grown."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._known: dict[str, tuple[tuple[int, int, int], SessionPreview]] = {}

    def board(
        self,
        standings: Iterable[LiveStatus],
        *,
        agent: str = "",
        project: str = "",
        rows: int = ROWS,
    ) -> NowBoard:
        """Subagents are told of by the session that called them; of what rests, only so many
        rows are told more of."""
        all_ = [each for each in standings if each.session.parent_session_id is None]
        shown = [
            each
            for each in all_
            if (not agent or each.session.agent == agent)
            and (not project or each.session.project == project)
        ]
        agents = sorted({each.session.agent for each in all_})
        projects = sorted({each.session.project for each in all_ if each.session.project})
        paused = [describe_pause(pause) for pause in active_pauses(self.settings)]
        try:
            with reading_local(self.settings) as library:
                health = _health(library)
                groups = self._groups(library, shown, rows)
                last = _last(library) if not any(groups.values()) else None
        except NotFound:
            bare = [AgentCapture(name, None, None, silent=False) for name in USUAL]
            groups = {}
            for key, some in _grouped(shown).items():
                groups[key] = [self._card(each, SessionPreview()) for each in some]
            return NowBoard(groups, agents, projects, bare, paused, empty=not shown)
        nothing = not shown and all(one.off for one in health)
        return NowBoard(groups, agents, projects, health, paused, last, empty=nothing)

    def _groups(
        self, library: LocalStore, shown: list[LiveStatus], rows: int
    ) -> dict[str, list[SessionCard]]:
        groups = _grouped(shown)
        more = [
            *groups["waiting_approval"],
            *groups["waiting"],
            *groups["running"],
            *groups["rest"][:rows],
        ]
        found = self._glances(library, more)

        def card(each: LiveStatus) -> SessionCard:
            approval = whole_approval(library, each.session, each.status.approval)
            return self._card(each, found.get(each.name, SessionPreview()), approval)

        return {key: list(map(card, some)) for key, some in groups.items()}

    def _glances(self, store: Store, shown: list[LiveStatus]) -> dict[str, SessionPreview]:
        numbers = [each.session.id for each in shown if each.session.id]
        lengths, commits = store.sessions.last_seqs(numbers), store.checkpoints.committed(numbers)
        changed = store.feed.of_sessions()
        with self._lock:
            known = self._known
            self._known = {}
            for each in shown:
                number = each.session.id
                state = (number, lengths.get(number, 0), changed.get(number, 0))
                before = known.get(each.name)
                glance = before[1] if before and before[0] == state else _glance(store, *state[:2])
                self._known[each.name] = (state, glance)
            found = {name: glance for name, (_, glance) in self._known.items()}
        return {
            each.name: msgspec.structs.replace(
                found[each.name], commits=commits.get(each.session.id, 0)
            )
            for each in shown
        }

    def _card(self, standing: LiveStatus, glance: SessionPreview, whole: str = "") -> SessionCard:
        session, status = standing.session, standing.status
        place = _place(session, self.settings.user_home)
        return SessionCard(
            session,
            status,
            standing.pid,
            place,
            glance,
            standing.summary or summarise((), status),
            whole,
        )


def _glance(store: Store, number: int, length: int) -> SessionPreview:
    if not number or not length:
        return SessionPreview()
    found, events = recent_turns(store, number)
    return SessionPreview(tuple(found), _options(events))


def _options(events: list[StoredEvent]) -> tuple[str, ...]:
    """Return the choices of a question; agents name them differently."""
    asked = next((event for event in reversed(events) if event.kind == "question.asked"), None)
    data: dict[str, Any] = (asked.data or {}) if asked else {}
    questions = data.get("questions") if isinstance(data.get("questions"), list) else [data]
    named: list[str] = []
    for question in questions if isinstance(questions, list) and len(questions) == 1 else []:
        options = (
            question.get("options") or question.get("choices")
            if isinstance(question, dict)
            else None
        )
        for option in options if isinstance(options, list) else []:
            word = option.get("label") if isinstance(option, dict) else option
            if isinstance(word, str) and word.strip():
                named.append(one_line(word)[:OPTION_MAX])
    return tuple(named[:OPTIONS])


def _grouped(shown: list[LiveStatus]) -> dict[str, list[LiveStatus]]:
    """Group the cards. Sessions that wait for an answer: longest wait first; others: most recent
    first."""
    groups: dict[str, list[LiveStatus]] = {phase: [] for phase in (*_ORDER, "rest")}
    for each in shown:
        groups[each.status.phase if each.status.phase in _ORDER else "rest"].append(each)
    now = wall_clock()
    groups["waiting_approval"].sort(key=lambda each: (each.status.since or now, each.name))
    groups["waiting"].sort(key=lambda each: (-(each.status.since or 0), each.name))
    groups["running"].sort(key=lambda each: (-(each.status.since or 0), each.name))
    groups["rest"].sort(
        key=lambda each: (-(each.status.heard_at or each.session.ended_at or 0), each.name)
    )
    open_threads = {each.session.thread for phase in _ORDER for each in groups[phase]}
    groups["rest"] = list(_folded(groups["rest"], open_threads))
    return groups


def _folded(rest: list[LiveStatus], told: set[str]) -> Iterator[LiveStatus]:
    """Of each thread the one that was heard last, unless the thread is told of already."""
    for each in rest:
        if each.session.thread not in told:
            told.add(each.session.thread)
            yield each


def _health(store: Store) -> list[AgentCapture]:
    found = []
    for name in AGENTS:
        started, hook = store.sessions.last_started(name), store.signals.last_heard(name)
        if name not in USUAL and hook is None and started is None:
            continue  # it never ran here
        silent = bool(hook and started and started > hook + SILENT)
        found.append(AgentCapture(name, store.sessions.last_ended(name), hook, silent))
    return found


def _last(library: LocalStore) -> Session | None:
    """The session that was active last; a copy that nobody opened was not."""
    for _, row in library.listing.page(ListFilter(), "last", 1):
        return library.sessions.by_number([row.id])[row.id]
    return None


def _place(session: Session, home: Path) -> str:
    """Where it works, as one would say it."""
    cwd = session.cwd or ""
    own = to_text(home)
    return f"~{cwd[len(own) :]}" if cwd == own or cwd.startswith(f"{own}/") else cwd
