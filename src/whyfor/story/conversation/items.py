"""The items of a page: each thing said or done is one; calls include their results, long rows of
calls are one item."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from whyfor.agents.edits import first_text
from whyfor.model.conversation import (
    AnsweredQuestion,
    Compaction,
    Decision,
    ErrorItem,
    Item,
    MessageItem,
    NoticeItem,
    Prompt,
    Question,
    Run,
    SubagentItem,
    Thought,
    ToolCallItem,
)
from whyfor.model.events import StoredEvent
from whyfor.model.text import one_line, plain, plural
from whyfor.story.conversation import tools
from whyfor.story.conversation.call_items import call_item, pictures, shown, time_between
from whyfor.story.conversation.calls import call_outcome
from whyfor.story.conversation.kinds import PageContext

RUN = 5  # calls in a row that are shown one by one; more are one line
WAITED = 5000  # ms a person took to allow something before it is worth a line of its own
_THOUGHT = 600_000  # ms; a longer pause was not thinking
_ANSWER = 600
_NOTICE = 160


def items(events: Iterable[StoredEvent], around: PageContext) -> list[Item]:
    return _folded(_Builder(around).all(events))


class _Builder:
    def __init__(self, around: PageContext) -> None:
        self.around = around
        self.found: list[Item] = []
        self.clock = around.before
        self.started: dict[str, StoredEvent] = {}
        self.asked: dict[str, StoredEvent] = {}
        self.calls: dict[str, ToolCallItem] = {}
        self.bare: ToolCallItem | None = None  # a person's own command, whose output comes next

    def all(self, events: Iterable[StoredEvent]) -> list[Item]:
        events = list(events)
        for event in events:
            ident = _ident(event)
            if event.kind == "subagent.started" and ident:
                self.started[ident] = event
            elif event.kind == "question.asked" and ident:
                self.asked[ident] = event
        for event in events:
            handle = _HANDLERS.get(event.kind)
            if handle is not None:
                handle(self, event)
            self.clock = event.created_at or self.clock
        return self.found

    def _cut(self, event: StoredEvent) -> int:
        """Return how many bytes of a text are not loaded."""
        here = len(event.text.encode("utf-8", "replace"))
        return max(0, self.around.sizes.get(event.seq, 0) - here)

    # -- words -----------------------------------------------------------------------------------

    def _user_prompt(self, event: StoredEvent) -> None:
        self.found.append(
            Prompt(
                *_place(event),
                event.text,
                pictures(event),
                by_agent=event.actor != "user",
                queued=bool(event.get("queued")),
                more=self._cut(event),
            )
        )

    def _assistant_message(self, event: StoredEvent) -> None:
        if event.text.strip():
            self.found.append(MessageItem(*_place(event), event.text, self._cut(event)))

    def _assistant_thinking(self, event: StoredEvent) -> None:
        took = None
        if self.clock is not None and event.created_at is not None:
            took = event.created_at - self.clock
            took = took if 1000 <= took <= _THOUGHT else None
        self.found.append(Thought(*_place(event), event.text, took, self._cut(event)))

    # -- calls -----------------------------------------------------------------------------------

    def _tool_call(self, event: StoredEvent) -> None:
        ident = _ident(event)
        result = self.around.results.get(ident) if ident else None
        if ident in self.asked:
            self._question(event, self.asked[ident], result)
        elif ident in self.started:
            self._sub(event, self.started[ident], result)
        else:
            call = call_item(event, result, self.around)
            self.bare = call if not ident else None
            self.calls[ident] = call
            self.found.append(call)

    def _tool_result(self, event: StoredEvent) -> None:
        """Add a result without a call; others are part of their call's item."""
        ident = _ident(event)
        if ident and ident in self.around.known:
            return
        if self.bare is not None and not ident:
            self.bare.output, self.bare.more = shown(event, self.around, failed=False)
            self.bare.last = event.seq
            self.bare.open, self.bare = False, None
        elif event.text.strip():
            call = msgspec.structs.replace(
                event, kind="tool.call", text="", name="Result", data=None
            )
            self.found.append(call_item(call, event, self.around))

    def _sub(self, call: StoredEvent, started: StoredEvent, result: StoredEvent | None) -> None:
        around = self.around
        child = around.children.get(_ident(call))
        calls, closing = around.inside.get(child.id, ([], "")) if child else ([], "")
        task = started.get("prompt")
        answer = result.text if result is not None else closing
        took = time_between(call, result)
        if child and took is None and child.started_at and child.ended_at:
            took = child.ended_at - child.started_at
        self.found.append(
            SubagentItem(
                *_place(call, max([_last(call, result), *(item.last for item in calls)])),
                one_line(started.text)[:200] or "no task recorded",
                one_line(started.name),
                (task if isinstance(task, str) else started.text) or "",
                answer[: around.limits.result],
                calls,
                max(0, child.tool_calls - len(calls)) if child else 0,
                child,
                took,
                failed=call_outcome(result) == "failed",
                open=result is None,
                cut=len(answer) > around.limits.result,
            )
        )

    def _subagent_started(self, event: StoredEvent) -> None:
        """Add a subagent that no call started."""
        if _ident(event) not in self.around.known:
            self._sub(event, event, None)

    def _question(self, call: StoredEvent, event: StoredEvent, result: StoredEvent | None) -> None:
        last = max(event.seq, _last(call, result))
        found = answered_questions(event, result)
        took = time_between(call, result)
        self.found.append(Question(*_place(call, last), found, took, open=result is None))

    def _question_asked(self, event: StoredEvent) -> None:
        if _ident(event) not in self.around.known:
            found = answered_questions(event, None)
            self.found.append(Question(*_place(event), found, None, open=False))

    def _approval_resolved(self, event: StoredEvent) -> None:
        ident = _ident(event)
        request = self.around.requests.get(ident)
        approved = event.get("decision") != "denied"
        after = time_between(request, event)
        call = self.calls.get(ident)
        if ident in self.around.known and (not approved or after is None or after < WAITED):
            return  # the call says it
        what = (request.text if request else "") or (call.argument if call else "") or event.text
        by_rule = event.actor == "system"
        self.found.append(Decision(*_place(event), approved, plain(what).strip(), after, by_rule))

    # -- the rest --------------------------------------------------------------------------------

    def _compaction(self, event: StoredEvent) -> None:
        """A summary that follows a compaction belongs to it."""
        near = [item for item in self.found[-3:] if isinstance(item, Compaction)]
        if near and not near[-1].summary and event.text:
            near[-1].summary, near[-1].last = event.text, event.seq
            return
        before = _number(event, "preTokens", "preCompactionTokens")
        after = _number(event, "postTokens", "postCompactionTokens")
        by_person = event.get("trigger") == "manual"
        self.found.append(Compaction(*_place(event), before, after, by_person, event.text))

    def _error(self, event: StoredEvent) -> None:
        last = self.found[-1] if self.found else None
        text = one_line(event.text)[:500]
        if isinstance(last, ErrorItem) and (last.text == text or not text or not last.text):
            last.text, last.number, last.last = last.text or text, last.number + 1, event.seq
        else:
            self.found.append(ErrorItem(*_place(event), text))

    def _turn_completed(self, event: StoredEvent) -> None:
        if event.get("interrupted"):
            self._note(event, "Interrupted", by_user=event.actor == "user")

    def _status_changed(self, event: StoredEvent) -> None:
        text = event.text.strip()
        undone, mode, branch = (event.get(x) for x in ("rolled_back_turns", "mode", "branch"))
        if text:
            self._words(event, text)
        elif isinstance(undone, int) and undone > 0:
            self._note(event, f"Took back {plural(undone, 'turn')}")
        elif event.get("rewound_to"):
            self._note(event, "Went back to an earlier prompt")
        elif event.get("cleared"):
            self._note(event, "Cleared the context")
        elif isinstance(mode, str):
            self._note(event, f"Mode: {one_line(mode)}")
        elif isinstance(branch, str):
            self._note(event, f"Now on branch {one_line(branch)}", by_user=False)

    def _words(self, event: StoredEvent, text: str) -> None:
        line = one_line(text)
        by_user = event.actor == "user"
        if len(line) > _NOTICE:
            self._note(event, f"{line[:_NOTICE]}…", by_user=by_user, more=text)
        else:
            self._note(event, line, by_user=by_user)

    def _note(self, event: StoredEvent, text: str, *, by_user: bool = True, more: str = "") -> None:
        self.found.append(NoticeItem(*_place(event), text, by_user, more))


_HANDLERS: dict[str, Callable[[_Builder, StoredEvent], None]] = {
    "user.prompt": _Builder._user_prompt,
    "assistant.message": _Builder._assistant_message,
    "assistant.thinking": _Builder._assistant_thinking,
    "tool.call": _Builder._tool_call,
    "tool.result": _Builder._tool_result,
    "subagent.started": _Builder._subagent_started,
    "question.asked": _Builder._question_asked,
    "approval.resolved": _Builder._approval_resolved,
    "compaction": _Builder._compaction,
    "error": _Builder._error,
    "turn.completed": _Builder._turn_completed,
    "status.changed": _Builder._status_changed,
}


def _place(event: StoredEvent, last: int | None = None) -> tuple[int, int, int | None]:
    """Return the first fields of every item: its event, the newest event it covers, its time."""
    return event.seq, event.seq if last is None else last, event.created_at


def _last(call: StoredEvent, result: StoredEvent | None) -> int:
    return max(call.seq, result.seq) if result else call.seq


def _ident(event: StoredEvent) -> str:
    return str(event.get("id") or event.get("request") or "")


def _number(event: StoredEvent, *names: str) -> int | None:
    values = map(event.get, names)
    return next((value for value in values if isinstance(value, int)), None)


# -- questions -----------------------------------------------------------------------------------


def answered_questions(event: StoredEvent, result: StoredEvent | None) -> list[AnsweredQuestion]:
    """Return each question with the chosen answer and the other options."""
    questions = event.get("questions")
    answers = result.get("answers") if result else None
    found = []
    for index, each in enumerate(questions if isinstance(questions, list) else []):
        if not isinstance(each, dict):
            continue
        text = first_text(each, "question", "message")
        chosen = _chosen(answers, text, index)
        options = each.get("options") or each.get("choices")
        labels = map(_label, options if isinstance(options, list) else [])
        others = [label for label in labels if label and label not in chosen]
        found.append(AnsweredQuestion(one_line(text), chosen, others))
    found = found or [AnsweredQuestion(one_line(event.text), "", [])]
    if result is not None and not any(each.chosen for each in found):
        found[-1].chosen = one_line(result.text)[:_ANSWER]
    return found


def _chosen(answers: Any, question: str, index: int) -> str:
    if isinstance(answers, dict):
        answer = answers.get(question)
    elif isinstance(answers, list) and index < len(answers):
        answer = answers[index]
    else:
        answer = None
    if isinstance(answer, list):
        answer = ", ".join(map(str, answer))
    return one_line(answer)[:_ANSWER] if isinstance(answer, str) else ""


def _label(option: Any) -> str:
    if isinstance(option, dict):
        option = option.get("label") or option.get("value")
    return one_line(option) if isinstance(option, str) else ""


# -- runs ----------------------------------------------------------------------------------------


def _folded(found: list[Item]) -> list[Item]:
    """Fold each long row of calls, with the thoughts between them, into one item. Failed calls stay
    visible."""
    told: list[Item] = []
    run: list[Item] = []
    for item in found:
        is_call = isinstance(item, ToolCallItem) and not item.unfolded
        if is_call or (run and isinstance(item, Thought)):
            run.append(item)
        else:
            told += [*_row(run), item]
            run = []
    return told + _row(run)


def _row(run: list[Item]) -> list[Item]:
    calls = [at for at, item in enumerate(run) if isinstance(item, ToolCallItem)]
    if len(calls) <= RUN:
        return run
    end = calls[-1] + 1
    return [_run(run[:end], len(calls)), *run[end:]]


def _run(run: list[Item], number: int) -> Run:
    own = [item for item in run if isinstance(item, ToolCallItem)]
    times = [item.at for item in run if item.at is not None]
    ends = [(item.at or 0) + (item.took or 0) for item in own if item.at is not None]
    took = max([*times, *ends]) - min(times) if times else None
    text = tools.counted((item.family for item in own), sum(item.denied for item in own))
    return Run(run[0].seq, max(item.last for item in run), run[0].at, run, number, text, took)
