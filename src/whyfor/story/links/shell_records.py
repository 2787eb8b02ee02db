"""What shell commands changed in files, where it was seen by comparing the work tree before and
after them (see capture/shell_edits.py); else only what a command's text says is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from whyfor.agents.tools import command_of, names_of
from whyfor.model.shell_edits import ShellEdits, ShellFileDiff
from whyfor.store.protocol import Store
from whyfor.story.links.activity import SessionActivity, WrittenEdit, acts
from whyfor.story.links.edits import Edit, edit_of_diff
from whyfor.story.links.line_keys import keys

_TEXT = 1 << 16
_FAR = 10 * 60 * 1000  # ms between a command's result and what was seen of it


class RecordedShell(msgspec.Struct, frozen=True):
    """A command of a session and what it changed."""

    call: str | None
    told: ShellEdits


class ShellRecords:
    """Reads what was seen; remembers what it read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sessions: set[tuple[str, str]] | None = None
        self._known: dict[int, dict[int, RecordedShell]] = {}

    def of(self, session: int) -> dict[int, RecordedShell]:
        """Return the commands of a session of which it is known what they changed, by the places of
        their results."""
        known = self._known.get(session)
        if known is None:
            known = self._known[session] = self._read(session)
        return known

    def known_commands(self, session: int) -> Counter[str]:
        """Return their texts, and how often each ran."""
        return Counter(record.told.command for record in self.of(session).values())

    def _read(self, session: int) -> dict[int, RecordedShell]:
        if self._sessions is None:
            self._sessions = self._store.signals.shell_sessions()
        if not self._sessions:
            return {}
        main = self._store.sessions.by_number([session]).get(session)
        if main is None:
            return {}
        # A subagent's hooks name the session that called it.
        names = {main.session_id, main.parent_session_id or main.session_id}
        told: list[ShellEdits] = []
        for name in sorted(names):
            if (main.agent, name) in self._sessions:
                told += self._store.signals.shell_edits(main.agent, name)
        told = [one for one in told if not one.skipped]
        return self._placed(session, told) if told else {}

    def _placed(self, session: int, told: list[ShellEdits]) -> dict[int, RecordedShell]:
        """By the places of results: through the call's id, else through its text and time."""
        refs = self._store.conversation.call_refs(
            session, 0, self._store.conversation.last_seq(session)
        )
        results = {ref.ident: ref.seq for ref in refs if ref.kind == "tool.result"}
        found = {}
        nameless = []
        for one in told:
            if one.call and one.call in results:
                found[results[one.call]] = RecordedShell(one.call, one)
            elif not one.call:
                nameless.append(one)
        if nameless:
            calls = {ref.seq: ref.ident for ref in refs if ref.kind == "tool.call"}
            self._place_by_text(session, nameless, calls, results, found)
        return found

    def _place_by_text(
        self,
        session: int,
        told: list[ShellEdits],
        calls: Mapping[int, str],
        results: Mapping[str, int],
        found: dict[int, RecordedShell],
    ) -> None:
        shells = names_of("shell")
        for event in self._store.conversation.events_at(session, calls, _TEXT):
            place = results.get(calls[event.seq])
            if place is None or (event.name or "").lower() not in shells:
                continue
            command = command_of((event.data or {}).get("input") or event.text)
            at = event.created_at or 0
            same = [one for one in told if one.command and command.startswith(one.command)]
            near = min(same, key=lambda one: abs(one.began - at), default=None)
            if near is not None and abs(near.began - at) < _FAR:
                found[place] = RecordedShell(calls[event.seq], near)
                told.remove(near)


def activity_of(store: Store, session: int) -> SessionActivity:
    """All acts of a session: as linking kept them, and what came since."""
    kept = store.links.activity(session)
    known = SessionActivity()
    if kept:
        known = msgspec.msgpack.decode(kept[1], type=SessionActivity)
    after = kept[0] if kept else 0
    if after < store.conversation.last_seq(session):
        known = acts(store.conversation.events(session, after + 1), known)
    return with_records(known, ShellRecords(store).of(session))


def with_records(
    activity: SessionActivity, records: Mapping[int, RecordedShell]
) -> SessionActivity:
    """Return a session's acts with what its commands changed, in place of what their texts say."""
    if not records:
        return activity
    written = [act for act in activity.written if act.seq not in records]
    for seq, record in records.items():
        for file in record.told.files:
            edit = _as_edit(record.told.top, file)
            written.append(
                WrittenEdit(
                    record.told.ended,
                    seq,
                    record.call,
                    edit.path,
                    edit.added,
                    edit.removed,
                    edit.kind,
                )
            )
    written.sort(key=lambda act: act.seq)
    return msgspec.structs.replace(activity, written=written)


def _as_edit(top: str, file: ShellFileDiff) -> Edit:
    path = f"{top}/{file.path}"
    if file.gone:
        return Edit(path, kind="gone")
    if file.whole is not None and not file.diff:
        return Edit(path, keys(file.whole.split("\n")), kind="whole")
    return edit_of_diff(path, file.diff)
