"""Read how a thread proceeds: turns, errors, compactions, rollbacks."""

from __future__ import annotations

from whyfor.agents.base import as_dict, flatten, get_int, get_str
from whyfor.agents.codex.record_place import RolloutPlace
from whyfor.agents.record_place import known_values
from whyfor.model.findings import Record
from whyfor.model.ids import fold
from whyfor.model.titles import TITLE_AGENT


class TurnTracker:
    def __init__(self, state: Record) -> None:
        self.state = state

    def started(self, event: Record, at: RolloutPlace) -> None:
        turn = event.get("turn_id")
        if isinstance(turn, str):
            self.state["turn"] = turn
        at.add(
            "turn.started",
            at.key(turn, "started"),
            "system",
            data={"turn_id": turn} if turn else None,
        )

    def completed(self, event: Record, at: RolloutPlace) -> None:
        turn = event.get("turn_id")
        data = {"turn_id": turn, "duration_ms": get_int(event, "duration_ms")}
        error = event.get("error")
        if error:
            self._erred(
                error if isinstance(error, dict) else {"message": error}, at.key(turn, "error"), at
            )
            data["failed"] = True
        at.add("turn.completed", at.key(turn, "completed"), "system", data=known_values(data))

    def aborted(self, event: Record, at: RolloutPlace) -> None:
        turn, reason = event.get("turn_id"), get_str(event, "reason")
        data = {
            "turn_id": turn,
            "interrupted": True,
            "reason": reason,
            "duration_ms": event.get("duration_ms"),
        }
        known = {key: value for key, value in data.items() if value}
        actor = "user" if reason == "interrupted" else "system"
        at.add("turn.completed", at.key(turn, "completed"), actor, data=known)

    def error(self, event: Record, at: RolloutPlace) -> None:
        self._erred(event, at.key(), at)

    def _erred(self, event: Record, key: int, at: RolloutPlace) -> None:
        text = get_str(event, "message") or flatten(event, 2000)
        mark = fold(text, self.state.get("turn"))
        if self.state.get("erred") != mark:  # some versions repeat it at the end of the turn
            self.state["erred"] = mark
            info = event.get("codex_error_info")
            at.add("error", key, "system", text, data={"info": info} if info else None)

    def compacted(self, payload: Record, at: RolloutPlace) -> None:
        self.state["compacted"] = True
        at.add("compaction", at.key(), "system", get_str(payload, "message"))

    def context_compacted(self, event: Record, at: RolloutPlace) -> None:
        if not self.state.pop("compacted", False):  # the record with the summary came before
            at.add("compaction", at.key(event.get("id")), "system")

    def rolled_back(self, event: Record, at: RolloutPlace) -> None:
        at.add(
            "status.changed",
            at.key(),
            "user",
            data={"rolled_back_turns": get_int(event, "num_turns")},
        )

    def renamed(self, event: Record, at: RolloutPlace) -> None:
        if event.get("thread_id") in (None, at.bucket.session_id):
            at.bucket.title(TITLE_AGENT, event.get("thread_name"))
            if origin := get_str(event, "restored_from"):
                self.state["root"] = at.bucket.session_id
                at.bucket.mark_copied(origin)

    def reviewed(self, event: Record, at: RolloutPlace) -> None:
        if "review_output" in event:
            text = get_str(as_dict(event["review_output"]), "overall_explanation")
            actor, step = "system", "finished"
        else:
            text = get_str(event, "user_facing_hint")
            actor, step = "user", "started"
        at.add("status.changed", at.key(event.get("id")), actor, text, data={"review": step})
