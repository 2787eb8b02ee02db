"""What the comment of a pull request tells, read from lines, stories and conversations."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from whyfor.agents.tools import command_of, names_of
from whyfor.git import history
from whyfor.git.place import GitPlace
from whyfor.model.blame import BlameRow
from whyfor.model.checkpoints import Part
from whyfor.model.errors import BadInput
from whyfor.model.events import StoredEvent
from whyfor.model.line_counts import RangeCounts
from whyfor.model.pull_request import CheckRun, GivenApproval, PullFile, PullPrompt, PullStory
from whyfor.model.stories import CommitStory
from whyfor.recall.change_review import review_in
from whyfor.recall.reversals import ReversalReader
from whyfor.store.open import LocalStore
from whyfor.story.command_families import check_in
from whyfor.story.commit_lookup import range_ends
from whyfor.story.commit_stories import stories_of
from whyfor.story.lines.known_lines import story_parts
from whyfor.story.lines.range_lines import RangeLines
from whyfor.story.rules.never import never_reason

_EVENTS = 20_000  # of a session that are looked at for checks
_COMMITS = 500


class PullReader:
    """Reads the story of a range of commits of one repository."""

    def __init__(self, library: LocalStore, folder: GitPlace) -> None:
        self.library = library
        self.folder = folder
        self.range = RangeLines(library, folder)
        self.prompts: dict[tuple[str, str, int], PullPrompt] = {}

    def story(self, revisions: str) -> PullStory:
        """Return what is told of a range. Raises BadInput, NotFound."""
        old, new, _ = range_ends(self.library, self.folder, revisions)
        if old is None:
            raise BadInput(f"{revisions} has no commit before it", "Give a range: main..HEAD")
        files = []
        for counts, rows in self.range.files(old, new):
            keys = dict.fromkeys(key for row in rows if (key := self._prompt(row)) is not None)
            files.append((counts, list(keys)))
        listed = history.commits(self.folder, [f"{old}..{new}"], limit=_COMMITS)
        stories = stories_of(self.library, self.folder, [commit.sha for commit in listed])
        self._annotate(stories)
        self._number()
        parts = [part for told in stories for part in story_parts(told)]
        checks, approvals = self._checks(parts)
        spans = self._spans(parts)
        review = review_in(
            self.library, ReversalReader(self.library, self.folder), self.folder, f"{old}..{new}"
        )
        return PullStory(
            revisions=revisions,
            counts=RangeCounts(old, new, [counts for counts, _ in files]),
            files=[PullFile(counts, self._numbers(keys)) for counts, keys in files],
            prompts=sorted(self.prompts.values(), key=lambda prompt: prompt.number),
            sessions=len({part.name for part in parts}),
            commits=len(listed),
            active=self._active(spans),
            tokens=self.library.checkpoints.spent(spans),
            checks=checks,
            approvals=approvals,
            findings=review.findings,
        )

    # -- prompts ---------------------------------------------------------------------------------

    def _prompt(self, row: BlameRow) -> tuple[str, str, int] | None:
        """Count a line for its prompt; None if none is known."""
        who = row.who
        if not who.agent or who.asked is None or who.writer is None:
            return None
        key = (who.agent, who.session_id, who.asked.seq)
        if key not in self.prompts:
            turns = self.range.blamer.turns
            self.prompts[key] = PullPrompt(
                number=0,
                agent=who.agent,
                session_id=who.session_id,
                turn=who.turn,
                text=who.asked.text,
                question=turns.question(who.writer.session, who.asked),
                closing=turns.closing(who.writer.session, who.asked),
                at=who.asked.at or who.writer.at,
                files=[],
                weighed=[],
            )
        found = self.prompts[key]
        found.lines += 1
        if row.path not in found.files:
            found.files.append(row.path)
        return key

    def _number(self) -> None:
        ordered = sorted(self.prompts.values(), key=lambda prompt: prompt.at)
        for number, prompt in enumerate(ordered, 1):
            prompt.number = number

    def _numbers(self, keys: Iterable[tuple[str, str, int]]) -> list[int]:
        return sorted(self.prompts[key].number for key in keys)

    def _annotate(self, stories: Sequence[CommitStory]) -> None:
        """Add what was noted for the commits of a prompt's session."""
        for told in stories:
            note = told.annotation
            if note is None or note.by == "derived":
                continue
            names = {(part.agent, part.session_id) for part in story_parts(told)}
            for prompt in self.prompts.values():
                if (prompt.agent, prompt.session_id) in names and not prompt.intent:
                    prompt.intent = note.intent
                    prompt.weighed += note.alternatives

    # -- what was run ----------------------------------------------------------------------------

    def _spans(self, parts: Iterable[Part]) -> list[tuple[int, int, int]]:
        numbers = self.library.sessions.numbers([(p.agent, p.session_id) for p in parts])
        found: dict[tuple[int, int, int], None] = {}
        for part in parts:
            number = numbers.get((part.agent, part.session_id))
            for first, last in part.ranges if number is not None else ():
                found[number, first, last] = None  # type: ignore[index]
        return list(found)

    def _active(self, spans: Iterable[tuple[int, int, int]]) -> int:
        total = 0
        for session, first, last in spans:
            times = self.library.conversation.active_times(session, last, first)
            total += sum(end - begin for begin, end in times)
        return total

    def _checks(self, parts: Sequence[Part]) -> tuple[list[CheckRun], list[GivenApproval]]:
        reader = _CommandReader()
        for session, first, last in self._spans(parts):
            events = self.library.conversation.events(session, first, min(last, first + _EVENTS))
            for event in events:
                reader.read(event)
        return list(reader.checks.values()), list(reader.approvals)


class _CommandReader:
    """Reads from events what was checked and what a person allowed."""

    def __init__(self) -> None:
        self.shells = names_of("shell")
        self.calls: dict[str, str] = {}
        self.asked: dict[str, str] = {}
        self.checks: dict[str, CheckRun] = {}
        self.approvals: dict[GivenApproval, None] = {}

    def read(self, event: StoredEvent) -> None:
        ident = str(event.get("id") or "")
        request = str(event.get("request") or ident)
        if event.kind == "tool.call" and (event.name or "").lower() in self.shells:
            self.calls[ident] = command_of(event.get("input")) or event.text
        elif event.kind == "tool.result" and ident in self.calls:
            self._ran(self.calls.pop(ident), event)
        elif event.kind == "approval.requested":
            self.asked[request] = command_of(event.get("input")) or event.text
        elif event.kind == "approval.resolved" and request in self.asked:
            self._answered(self.asked.pop(request), str(event.get("decision") or ""))

    def _ran(self, command: str, event: StoredEvent) -> None:
        check = check_in(command)
        if check is None:
            return
        failed = bool(event.get("failed"))
        code = event.get("exit_code")
        known = self.checks.get(check.text)
        self.checks[check.text] = CheckRun(
            command=check.text,
            outcome="failed" if failed else "passed",
            exit_code=code if isinstance(code, int) else None,
            runs=(known.runs if known else 0) + 1,
            failures=(known.failures if known else 0) + failed,
        )

    def _answered(self, command: str, decision: str) -> None:
        if decision != "approved":
            return
        try:
            words = shlex.split(command)
        except ValueError:
            return
        reason = never_reason(words) if words else None
        if reason is not None:
            self.approvals[GivenApproval(command, reason)] = None
