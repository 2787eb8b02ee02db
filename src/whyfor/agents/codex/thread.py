"""What the thread is: where it runs, whose subagent it is, which of its records are its own."""

from __future__ import annotations

from whyfor.agents.base import (
    as_dict,
    as_str,
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.codex.record_place import RolloutPlace
from whyfor.agents.codex.records import parent
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


class Thread:
    def __init__(self, state: Record) -> None:
        self.state = state

    def inherited(self, record: Record, kind: str, payload: Record, own: str) -> bool:
        """Return whether a record is a copy from the parent: a subagent's file may begin with its
        parent's conversation."""
        state = self.state
        if kind == "session_meta":
            if "root" in state and payload.get("id") != own:
                state["inherits"] = True
            return False
        start = state.get("own_from")
        if start is not None:
            ordinal = get_int(record, "ordinal")
            return ordinal is not None and ordinal < start
        if state.get("inherits"):
            if kind != "turn_context" and payload.get("type") not in (
                "task_started",
                "turn_started",
            ):
                return True
            # Ids are UUIDv7: a turn that is older than the thread itself is the parent's.
            state["inherits"] = _is_older(payload.get("turn_id"), own)
        return bool(state.get("inherits"))

    def copies(self, payload: Record, own: str) -> bool:
        """Whether a record was copied from another thread: ids are UUIDv7, so that a turn which is
        older than its thread began elsewhere."""
        turn = payload.get("turn_id")
        if isinstance(turn, str):
            self.state["copies"] = _is_older(turn, own)
        return bool(self.state.get("copies"))

    def meta(self, meta: Record, at: RolloutPlace) -> None:
        """Read a head. The thread's own comes first; heads of threads it was copied from, or its
        own again, may follow."""
        own, ident = at.bucket.session_id, get_str(meta, "id")
        first = "root" not in self.state
        origin = get_str(meta, "forked_from_id")
        if origin == parent(meta):
            origin = ""
        # what follows the head of a fork is its origin's
        self.state["root"] = (origin if first else "") or ident or own
        if not first and ident != own:
            self.state["continues"] = True
            return
        facts = at.bucket.facts
        if (kind := _subagent(meta)) is not None:
            self.state["side"] = True
            facts["subagent"] = kind
        if meta.get("forked_from_id") or meta.get("history_base") or self.state.get("side"):
            self.state["continues"] = True
        if origin:
            facts["forked_from"] = origin
        if (start := get_int(meta, "subagent_history_start_ordinal")) is not None:
            self.state["own_from"] = start
        version = get_str(meta, "cli_version")
        if version:
            facts["version"] = version
        at.when = parse_iso(meta.get("timestamp")) or at.when if first else at.when
        git = get_dict(meta, "git")
        branch = get_str(git, "branch")
        if remote := get_str(git, "repository_url"):
            facts["remote"] = remote
        told = {
            "version": version,
            "originator": meta.get("originator"),
            "source": get_str(meta, "source"),
            "forked_from": origin,
        }
        self._place(get_str(meta, "cwd"), branch, told if first else {}, first, at)

    def turn_context(self, payload: Record, at: RolloutPlace) -> None:
        if isinstance(model := payload.get("model"), str):
            self.state["model"] = model
        if isinstance(turn := payload.get("turn_id"), str):
            self.state["turn"] = turn
        if cwd := get_str(payload, "cwd"):
            self.moved(cwd, at)

    def moved(self, cwd: str, at: RolloutPlace) -> None:
        self._place(cwd, "", {}, False, at)

    def _place(self, cwd: str, branch: str, told: Record, first: bool, at: RolloutPlace) -> None:
        """Add where the session runs, at its start and whenever it changes."""
        before = get_list(self.state, "place") or ["", ""]
        place = [cwd or before[0], branch or before[1]]
        if not first and place == before:
            return
        self.state["place"] = place
        key = at.key(at.bucket.session_id, "started") if first else at.key(None, "place")
        at.locate(key, {"cwd": cwd, "branch": branch, **told}, first=first)


def _subagent(meta: Record) -> str | None:
    """Return what kind of subagent the thread is; None if it is not one."""
    source = get_dict(meta, "source").get("subagent")
    spawned = get_dict(as_dict(source), "thread_spawn")
    names = [spawned.get("agent_role"), meta.get("agent_role"), spawned.get("agent_nickname")]
    names += [
        meta.get("agent_nickname"),
        source,
        as_dict(source).get("other"),
        spawned.get("agent_path"),
    ]
    known = next((name for name in names if isinstance(name, str) and name), None)
    is_one = (
        source is not None or meta.get("thread_source") == "subagent" or parent(meta) is not None
    )
    return (known or "subagent") if is_one else None


def _is_older(turn: object, thread: str) -> bool:
    both = [as_str(turn), thread]
    return all(len(ident) == 36 and ident[14] == "7" for ident in both) and both[0] < both[1]
