"""What is known of a running session, kept small and fed one sign at a time.

Everything here is the newest of its kind or a set that only grows, so that signs may come late,
twice and in any order: hooks are ahead of the transcript's line about the same thing, and a
replay says it all again.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from whyfor.agents.tools import tool_kind
from whyfor.story.status.inputs import StatusInput

# calls that are remembered, answered ones too: their call may be told after their answer
CALLS_MAX = 64
ASKS_MAX = 32
CHILDREN_MAX = 64
REASON_MAX = 500
GRACE = 1_000  # ms: a turn's last words may be dated a moment after its end


class LastHeard(msgspec.Struct, frozen=True, order=True):
    """When something was last said, and by whom; the order of fields is how two of them compare."""

    at: int = 0
    order: int = 0
    kind: str = ""
    word: str = ""
    source: str = ""
    text: str = ""


class OpenToolCall(msgspec.Struct, frozen=True):
    id: str = ""
    at: int = 0  # 0: only its answer was seen
    order: int = 0
    child: str = ""
    tool: str = ""
    text: str = ""
    path: str = ""
    cut: bool = False
    spawns: bool = False
    task: str = ""  # what the subagent is to do
    asks: bool = False  # a person has to answer it
    question: str = ""
    source: str = ""
    done_at: int = 0

    @property
    def latest(self) -> int:
        return max(self.at, self.done_at)


class OpenRequest(msgspec.Struct, frozen=True):
    at: int = 0
    order: int = 0
    word: str = ""
    source: str = ""
    kind: str = "permission"  # permission | plan | question
    child: str = ""
    call: str = ""  # the call it is about, where the agent says so
    tool: str = ""
    text: str = ""
    path: str = ""
    cut: bool = False
    done_at: int = 0

    @property
    def latest(self) -> int:
        return max(self.at, self.done_at)


class Child(msgspec.Struct, frozen=True):
    """A subagent: when it last did something, got a result, and stopped."""

    active: int = 0
    result: int = 0
    stopped: int = 0

    @property
    def latest(self) -> int:
        return max(self.active, self.stopped)


class State(msgspec.Struct, frozen=True):
    first: int = 0  # when anything at all was heard first, and last
    heard: LastHeard = LastHeard()
    started: LastHeard = LastHeard()
    prompt: LastHeard = LastHeard()
    worked: LastHeard = LastHeard()  # the agent itself did something
    result: LastHeard = LastHeard()  # a tool answered it
    closed: LastHeard = LastHeard()  # a turn ended: done, failed, interrupted
    stopped: LastHeard = LastHeard()  # the same, said by a hook
    failed: LastHeard = LastHeard()
    interrupted: LastHeard = LastHeard()
    ready: LastHeard = LastHeard()  # the prompt was said to be free
    busy: LastHeard = LastHeard()  # its own registry says that it works
    noticed: LastHeard = LastHeard()
    compacting: LastHeard = LastHeard()
    compacted: LastHeard = LastHeard()
    erred: LastHeard = LastHeard()
    exited: LastHeard = LastHeard()
    place: LastHeard = LastHeard()  # the folder, as its text
    single: bool = False  # its program ends with the turn
    hooked: bool = False  # its hooks are heard, so that an end will be told
    pid: tuple[int, int, int] = (0, 0, 0)  # when it was told, pid, start
    calls: dict[str, OpenToolCall] = {}
    asks: dict[str, OpenRequest] = {}
    children: dict[str, Child] = {}
    floor: int = 0  # of what is as old as this, some is forgotten already


NEW = State()
_ALONE = (
    "started prompt busy failed interrupted ready noticed compacting compacted erred exited".split()
)
_WORK = ("thinking", "spoke", "call", "result")
_CLOSING = ("done", "failed", "interrupted")
_Entry = TypeVar("_Entry", OpenToolCall, OpenRequest, Child)


def apply(state: State, sign: StatusInput) -> State:
    """The state with what a sign adds to it."""
    changes: dict[str, object] = {} if 0 < state.first <= sign.at else {"first": sign.at}
    mark = LastHeard(sign.at, sign.order, sign.kind, sign.word, sign.source, _reason(sign))
    for name in _registers(sign):
        if mark > getattr(state, name):
            changes[name] = mark
    if sign.cwd and (place := LastHeard(sign.at, sign.order, text=sign.cwd)) > state.place:
        changes["place"] = place
    if sign.source == "hook" and not state.hooked:
        changes["hooked"] = True
    if sign.single and not sign.child:
        changes["single"] = True
    if sign.process and (sign.at, *sign.process) > state.pid:
        changes["pid"] = (sign.at, *sign.process)
    state = msgspec.structs.replace(state, **changes) if changes else state
    return _child(_asked(_called(state, sign), sign), sign)


def _reason(sign: StatusInput) -> str:
    return (
        sign.text[:REASON_MAX] if sign.kind in ("failed", "interrupted", "erred", "exited") else ""
    )


def _registers(sign: StatusInput) -> list[str]:
    names = ["heard"]
    if sign.kind in _ALONE:
        names.append(sign.kind)
    if sign.child:
        return names
    if sign.kind == "result":
        names.append("result")
    if sign.kind in _WORK:
        names.append("worked")
    if sign.kind in _CLOSING:
        names += ["closed", "stopped"] if sign.source == "hook" else ["closed"]
    return names


def _called(state: State, sign: StatusInput) -> State:
    if sign.kind not in ("call", "result", "question") or not sign.call:
        return state
    known = state.calls.get(sign.call, OpenToolCall(sign.call))
    if sign.kind == "result":
        # The first to tell of it is the nearest to it: the next request may follow within
        # milliseconds.
        found = msgspec.structs.replace(known, done_at=min(known.done_at or sign.at, sign.at))
    else:
        found = _more(known, sign)
    if found.done_at:  # nobody asks any more what it was
        found = msgspec.structs.replace(found, text="", path="", task="", question="")
    return _kept(state, "calls", CALLS_MAX, sign.call, found)


def _more(known: OpenToolCall, sign: StatusInput) -> OpenToolCall:
    """A call is told by up to three signs: a hook, its record, and what else the record means."""
    place = max((known.at, known.order), (sign.at, sign.order))
    said = "question" if sign.kind == "question" else "task" if sign.spawns else "text"
    return msgspec.structs.replace(
        known,
        at=place[0],
        order=place[1],
        child=max(known.child, sign.child),
        tool=max(known.tool, sign.tool),
        path=max(known.path, sign.path, key=_fuller),
        cut=known.cut or sign.cut,
        spawns=known.spawns or sign.spawns,
        asks=known.asks or sign.kind == "question",
        source=max(known.source, sign.source),
        **{said: max(getattr(known, said), sign.text, key=_fuller)},
    )


def _fuller(text: str) -> tuple[int, str]:
    return len(text), text


def _asked(state: State, sign: StatusInput) -> State:
    """Hooks do not say which call they are about; of each subagent the last of them counts."""
    if sign.kind == "asked" or (sign.kind == "question" and not sign.call):
        kind = (
            "question"
            if sign.kind == "question"
            else "plan"
            if tool_kind(sign.tool, sign.agent) == "plan"
            else "permission"
        )
        key = sign.call or f"{sign.kind} {sign.child}"
        told = OpenRequest(
            sign.at,
            sign.order,
            sign.word,
            sign.source,
            kind,
            sign.child,
            sign.about or sign.call,
            sign.tool,
            sign.text,
            sign.path,
            sign.cut,
        )
        known = state.asks.get(key, OpenRequest())
        newer = max(told, msgspec.structs.replace(known, done_at=0), key=msgspec.structs.astuple)
        return _kept(
            state, "asks", ASKS_MAX, key, msgspec.structs.replace(newer, done_at=known.done_at)
        )
    if sign.kind == "answered" and sign.call:
        known = state.asks.get(sign.call, OpenRequest())
        found = msgspec.structs.replace(known, done_at=max(known.done_at, sign.at))
        return _kept(state, "asks", ASKS_MAX, sign.call, found)
    return state


def _child(state: State, sign: StatusInput) -> State:
    if not sign.child:
        return state
    known = state.children.get(sign.child, Child())
    if sign.kind == "child.stopped":
        found = msgspec.structs.replace(known, stopped=max(known.stopped, sign.at))
    elif sign.kind == "result":
        found = Child(max(known.active, sign.at), max(known.result, sign.at), known.stopped)
    elif sign.kind in ("child.active", "asked", *_WORK):
        found = msgspec.structs.replace(known, active=max(known.active, sign.at))
    else:
        return state
    return _kept(state, "children", CHILDREN_MAX, sign.child, found)


def _kept(state: State, name: str, limit: int, key: str, entry: _Entry) -> State:
    """With an entry, unless it is as old as what was forgotten; the oldest gives way, what is
    answered first."""
    known: dict[str, _Entry] = getattr(state, name)
    if known.get(key) == entry or (key not in known and entry.latest <= state.floor):
        return state
    entries = {**known, key: entry}
    if len(entries) <= limit:
        return msgspec.structs.replace(state, **{name: entries})
    gone = entries.pop(
        min(entries, key=lambda key: (not _over(entries[key]), entries[key].latest, key))
    )
    return msgspec.structs.replace(state, **{name: entries, "floor": max(state.floor, gone.latest)})


def _over(entry: OpenToolCall | OpenRequest | Child) -> bool:
    return entry.stopped >= entry.active if isinstance(entry, Child) else bool(entry.done_at)
