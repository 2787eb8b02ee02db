"""What stands on the page: things said and done, each one item; calls with their results, long
runs of them as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from whyfor.model.conversation import (
    AnsweredQuestion,
    Compaction,
    Decision,
    ErrorItem,
    FileDiff,
    Item,
    MessageItem,
    NoticeItem,
    Picture,
    Prompt,
    Question,
    Run,
    ShownEdit,
    SubagentItem,
    Thought,
    ToolCallItem,
)
from whyfor.model.events import StoredEvent
from whyfor.model.text import one_line, plain
from whyfor.story.conversation import tools
from whyfor.story.conversation.diffs import file_diffs, mark_differences
from whyfor.story.conversation.kinds import PageContext

RUN = 5  # calls in a row that are shown one by one; more are one line
WAITED = 5000  # ms a person took to allow something before it is worth a line of its own
_THOUGHT = 600_000  # ms; a longer pause was not thinking
_ANSWER = 600
_EXIT = re.compile(r"Exit code (\d{1,9})(?:\n|$)")  # how Claude Code tells it, before the output


def items(events: Iterable[StoredEvent], around: PageContext) -> list[Item]:
    return _folded(_Builder(around).all(events))


class _Builder:
    def __init__(self, around: PageContext) -> None:
        self.around = around
        self.cwd = around.session.cwd
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

    def _since(self, event: StoredEvent) -> int | None:
        if self.clock is None or event.created_at is None:
            return None
        return event.created_at - self.clock if event.created_at >= self.clock else None

    def _cut(self, event: StoredEvent) -> int:
        """How much of a text is not here."""
        return max(
            0, self.around.sizes.get(event.seq, 0) - len(event.text.encode("utf-8", "replace"))
        )

    # -- words -----------------------------------------------------------------------------------

    def _user_prompt(self, event: StoredEvent) -> None:
        data = event.data or {}
        self.found.append(
            Prompt(
                event.seq,
                event.seq,
                event.created_at,
                event.text,
                pictures(event),
                by_agent=event.actor != "user",
                queued=bool(data.get("queued")),
                more=self._cut(event),
            )
        )

    def _assistant_message(self, event: StoredEvent) -> None:
        if event.text.strip():
            self.found.append(
                MessageItem(event.seq, event.seq, event.created_at, event.text, self._cut(event))
            )

    def _assistant_thinking(self, event: StoredEvent) -> None:
        took = self._since(event)
        took = took if took is not None and 1000 <= took <= _THOUGHT else None
        self.found.append(
            Thought(event.seq, event.seq, event.created_at, event.text, took, self._cut(event))
        )

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
        """Those of calls are told with them."""
        ident = _ident(event)
        if ident and ident in self.around.known:
            return
        if self.bare is not None and not ident:
            told = shown(event, self.around, failed=False)
            self.bare.output, self.bare.more, self.bare.last = told[0], told[1], event.seq
            self.bare.open, self.bare = False, None
            return
        call = StoredEvent(
            event.seq,
            event.turn,
            "tool.call",
            "",
            "",
            event.created_at,
            0,
            event.actor,
            "",
            "Result",
            None,
        )
        if event.text.strip():
            self.found.append(call_item(call, event, self.around))

    def _sub(self, call: StoredEvent, started: StoredEvent, result: StoredEvent | None) -> None:
        data, ident, around = started.data or {}, _ident(call), self.around
        child = around.children.get(ident)
        inside = around.inside.get(child.id, ([], "")) if child else ([], "")
        task = data.get("prompt") if isinstance(data.get("prompt"), str) else started.text
        answer = result.text if result is not None else inside[1]
        took = _between(call, result)
        if child and took is None and child.started_at and child.ended_at:
            took = child.ended_at - child.started_at
        self.found.append(
            SubagentItem(
                call.seq,
                max(call.seq, result.seq if result else 0, *(item.last for item in inside[0]), 0),
                call.created_at,
                one_line(started.text)[:200] or "no task recorded",
                one_line(started.name),
                task or "",
                answer[: around.limits.result],
                inside[0],
                max(0, child.tool_calls - len(inside[0])) if child else 0,
                child,
                took,
                failed=bool(result and (result.data or {}).get("failed")),
                open=result is None,
                cut=len(answer) > around.limits.result,
            )
        )

    def _subagent_started(self, event: StoredEvent) -> None:
        """One that no call tells of."""
        if _ident(event) not in self.around.known:
            self._sub(event, event, None)

    def _question(self, call: StoredEvent, event: StoredEvent, result: StoredEvent | None) -> None:
        last = max(call.seq, event.seq, result.seq if result else 0)
        found = answered_questions(event, result)
        self.found.append(
            Question(call.seq, last, call.created_at, found, _between(call, result), result is None)
        )

    def _question_asked(self, event: StoredEvent) -> None:
        if _ident(event) not in self.around.known:
            self.found.append(
                Question(
                    event.seq,
                    event.seq,
                    event.created_at,
                    answered_questions(event, None),
                    None,
                    open=False,
                )
            )

    def _approval_resolved(self, event: StoredEvent) -> None:
        data, ident = event.data or {}, _ident(event)
        request = self.around.requests.get(ident)
        approved = data.get("decision") != "denied"
        after = _between(request, event) if request else None
        call = self.calls.get(ident)
        if ident in self.around.known and (not approved or after is None or after < WAITED):
            return  # the call says it
        what = (request.text if request else "") or (call.argument if call else "") or event.text
        by_rule = event.actor == "system"
        self.found.append(
            Decision(
                event.seq,
                event.seq,
                event.created_at,
                approved,
                plain(what).strip(),
                after,
                by_rule,
            )
        )

    # -- the rest --------------------------------------------------------------------------------

    def _compaction(self, event: StoredEvent) -> None:
        data = event.data or {}
        last = next(
            (item for item in reversed(self.found[-3:]) if isinstance(item, Compaction)), None
        )
        if last is not None and not last.summary and event.text:
            last.summary, last.last = event.text, event.seq
            return
        before = _number(data, "preTokens", "preCompactionTokens")
        after = _number(data, "postTokens", "postCompactionTokens")
        by_person = data.get("trigger") == "manual"
        self.found.append(
            Compaction(event.seq, event.seq, event.created_at, before, after, by_person, event.text)
        )

    def _error(self, event: StoredEvent) -> None:
        last = self.found[-1] if self.found else None
        text = one_line(event.text)[:500]
        if isinstance(last, ErrorItem) and (last.text == text or not text or not last.text):
            last.text, last.number, last.last = last.text or text, last.number + 1, event.seq
        else:
            self.found.append(ErrorItem(event.seq, event.seq, event.created_at, text))

    def _turn_completed(self, event: StoredEvent) -> None:
        if (event.data or {}).get("interrupted"):
            self._note(event, "Interrupted", by_user=event.actor == "user")

    def _status_changed(self, event: StoredEvent) -> None:
        data, text = event.data or {}, event.text.strip()
        by_user = event.actor == "user"
        if text:
            line = one_line(text)
            self._note(
                event,
                line[:160] + ("…" if len(line) > 160 else ""),
                by_user,
                text if len(line) > 160 else "",
            )
        elif isinstance(undone := data.get("rolled_back_turns"), int) and undone > 0:
            self._note(
                event, f"Took back {undone} {'turn' if undone == 1 else 'turns'}", by_user=True
            )
        elif data.get("rewound_to"):
            self._note(event, "Went back to an earlier prompt", by_user=True)
        elif data.get("cleared"):
            self._note(event, "Cleared the context", by_user=True)
        elif isinstance(data.get("mode"), str):
            self._note(event, f"Mode: {one_line(data['mode'])}", by_user=True)
        elif isinstance(data.get("branch"), str):
            self._note(event, f"Now on branch {one_line(data['branch'])}", by_user=False)

    def _note(self, event: StoredEvent, text: str, by_user: bool, more: str = "") -> None:
        self.found.append(NoticeItem(event.seq, event.seq, event.created_at, text, by_user, more))


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


# -- one call ------------------------------------------------------------------------------------


def call_item(event: StoredEvent, result: StoredEvent | None, around: PageContext) -> ToolCallItem:
    kind = tools.call_kind(event, around.session.agent)
    data = (result.data or {}) if result else {}
    failed, denied = bool(data.get("failed")), bool(data.get("rejected"))
    edits = (
        [edited(change, around) for change in file_diffs(event, result)] if kind != "read" else []
    )
    output, more = shown(result, around, failed=failed) if result else ("", 0)
    if edits and not failed:
        output, more = "", 0  # it only says that the file was changed
    took = _between(event, result)
    if took is not None and took < (1000 if kind in ("run", "web", "other") else 10_000):
        took = None
    argument = tools.argument_line(event, kind, around.session.cwd)
    if (edits and not argument.strip()) or tools.is_patch(event, around.session.agent):
        argument = ", ".join(dict.fromkeys(edit.path for edit in edits)) or argument
    call = ToolCallItem(
        event.seq,
        max(event.seq, result.seq if result else 0),
        event.created_at,
        kind,
        tools.verb(event, kind, around.session.agent),
        tools.icon(kind),
        argument[:400],
        argument if kind in ("read", "edit", "write") else "",
        plain(tools.whole_input(event, kind))[: around.limits.given],
        edits,
        output,
        more,
        pictures(result) if result else [],
        [],
        took,
        failed,
        denied,
        open=result is None,
        by_user=event.actor == "user",
        unfolded=failed and not denied,
    )
    call.meta = _ended(call, event, result, data)
    return call


def _ended(
    call: ToolCallItem, event: StoredEvent, result: StoredEvent | None, data: dict[str, Any]
) -> list[str]:
    """How it ended, in a word or two."""
    if result is None:
        return ["no result yet"]
    if call.denied:
        return ["you denied or stopped it"]  # the transcript has one word for both
    told: list[str] = []
    total = call.more + (call.output.count("\n") + 1 if call.output else 0)
    if call.failed:
        code = data.get("exit_code")
        said = _EXIT.match(result.text)
        told.append(
            f"exit {code}"
            if isinstance(code, int) and code
            else f"exit {said[1]}"
            if said
            else "failed"
        )
    elif call.edits:
        pass  # the numbers of lines are told in colour
    elif call.family == "read":
        told.append(tools.lines_read(event) or _lines(total))
    elif call.family == "search":
        told.append(
            "no match"
            if not total or call.output.lower().startswith("no ")
            else f"{total:,} {'match' if total == 1 else 'matches'}"
        )
    elif total == 1 and len(call.output) <= 36:
        told.append(call.output.strip())
    elif total:
        told.append(_lines(total))
    return told


def _lines(number: int) -> str:
    return f"{number:,} {'line' if number == 1 else 'lines'}" if number else "empty"


def shown(result: StoredEvent, around: PageContext, *, failed: bool) -> tuple[str, int]:
    """The beginning of an output, and how many lines more there are; of a failure its end, which
    tells most."""
    text = plain(result.text).strip("\n")
    limits = around.limits
    if failed:
        text = _EXIT.sub("", text, count=1)
    if not text.strip():
        return "", 0
    all_lines = text.split("\n")
    total = max(around.lines.get(result.seq, 0), len(all_lines))
    most = limits.failed_lines if failed else limits.lines
    if failed and total == len(all_lines):
        all_lines = all_lines[-most:]
    kept, size = [], 0
    for line in all_lines[:most]:
        size += len(line) + 1
        if size > limits.chars:
            kept.append(line[: max(0, limits.chars - size + len(line))] + "…")
            break
        kept.append(line)
    return "\n".join(kept), total - len(kept)


def edited(change: FileDiff, around: PageContext) -> ShownEdit:
    rows = change.rows[: around.limits.rows]
    mark_differences(rows)
    path = one_line(tools.shorter(change.path, around.session.cwd))
    old = one_line(tools.shorter(change.old_path, around.session.cwd)) if change.old_path else None
    return ShownEdit(
        path, change.what, old, change.added, change.removed, rows, len(change.rows) - len(rows)
    )


def pictures(event: StoredEvent) -> list[Picture]:
    found = (event.data or {}).get("images")
    made = []
    for index, image in enumerate(found if isinstance(found, list) else []):
        if isinstance(image, dict):
            size = image.get("bytes") if isinstance(image.get("bytes"), int) else None
            drawn = str(image.get("media_type") or "").startswith("image/")
            made.append(Picture(event.seq, index, _named(image), size, drawn and bool(size)))
    return made


def _named(image: dict[str, Any]) -> str:
    """A file's own name, else what it is."""
    for name in ("filename", "displayName", "path"):
        if isinstance(image.get(name), str) and one_line(image[name]):
            return one_line(image[name]).replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    kind, _, form = one_line(str(image.get("media_type") or "")).partition("/")
    return f"{form.upper()} image" if kind == "image" and form else kind or "file"


def answered_questions(event: StoredEvent, result: StoredEvent | None) -> list[AnsweredQuestion]:
    """Each question with what was chosen, and what was not."""
    questions = (event.data or {}).get("questions")
    answers = (result.data or {}).get("answers") if result else None
    found = []
    for index, each in enumerate(questions if isinstance(questions, list) else []):
        if not isinstance(each, dict):
            continue
        text = next(
            (each[name] for name in ("question", "message") if isinstance(each.get(name), str)), ""
        )
        chosen = _chosen(answers, text, index)
        options = each.get("options") or each.get("choices")
        labels = [_label(option) for option in options] if isinstance(options, list) else []
        found.append(
            AnsweredQuestion(
                one_line(text), chosen, [label for label in labels if label and label not in chosen]
            )
        )
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
    """Calls in a row, with the thoughts between them; long rows become one line."""
    told: list[Item] = []
    run: list[Item] = []

    def close() -> None:
        number = sum(isinstance(item, ToolCallItem) for item in run)
        if number > RUN:
            while not isinstance(run[-1], ToolCallItem):
                after.insert(0, run.pop())
            told.append(_run(run, number))
        else:
            told.extend(run)
        told.extend(after)
        run.clear()
        after.clear()

    after: list[Item] = []
    for item in found:
        if (isinstance(item, ToolCallItem) and not item.unfolded) or (
            run and isinstance(item, Thought)
        ):
            run.append(item)  # a failure stands by itself: it is not to be missed
        else:
            close()
            told.append(item)
    close()
    return told


def _run(run: list[Item], number: int) -> Run:
    own = [item for item in run if isinstance(item, ToolCallItem)]
    times = [item.at for item in run if item.at is not None]
    ends = [(item.at or 0) + (item.took or 0) for item in own if item.at is not None]
    took = max([*times, *ends]) - min(times) if times else None
    text = tools.counted((item.family for item in own), sum(item.denied for item in own))
    return Run(run[0].seq, max(item.last for item in run), run[0].at, list(run), number, text, took)


def _ident(event: StoredEvent) -> str:
    data = event.data or {}
    return str(data.get("id") or data.get("request") or "")


def _between(one: StoredEvent | None, other: StoredEvent | None) -> int | None:
    if one is None or other is None or one.created_at is None or other.created_at is None:
        return None
    return max(0, other.created_at - one.created_at)


def _number(data: dict[str, Any], *names: str) -> int | None:
    return next((data[name] for name in names if isinstance(data.get(name), int)), None)
