"""One note for each command that the sessions of a project build, test or check with: how often it
passed and failed in all of them."""

from __future__ import annotations

from collections.abc import Iterator

from whyfor.model.memory import Observation, ProjectCommand, Quote, cut_title
from whyfor.model.text import plural
from whyfor.store.protocol import SharedStore

_MOST = 50  # commands of a project, those that passed most often


def note_changed_commands(store: SharedStore) -> None:
    """Make the notes on commands anew where sessions ran some, or are gone; in the caller's
    transaction."""
    changed = store.memory.changed_commands()
    if not changed:
        return
    identities = {number: project.identity for number, project in store.projects.known()}
    for project in changed:
        notes = command_notes(identities.get(project, ""), store.memory.project_commands(project))
        store.memory.save_commands(project, notes)


def command_notes(
    project: str, commands: list[ProjectCommand]
) -> Iterator[tuple[int, Observation]]:
    """Yield the notes on a project's commands, each with the session in which it passed last."""
    for command in commands[:_MOST]:
        count = command.count
        ran = f"ran {plural(count.runs, 'time')} in {plural(command.sessions, 'session')}"
        yield (
            command.session,
            Observation(
                key=_key(project, count.family),
                type="command",
                state="verified",
                title=cut_title(f"`{count.command}` works"),
                turn=command.turn,
                at=count.last_ok,
                facts=(f"{ran}, passed {count.ok}, failed {count.failed}",),
                concepts=(count.family,),
                evidence=(Quote(count.ok_seq, 0, 0, count.command),),
            ),
        )


def _key(project: str, family: str) -> str:
    from hashlib import sha256  # here: OpenSSL takes longer to load than most runs take

    text = f"{project}\ncommand {family}"
    return sha256(text.encode()).hexdigest()[:16]
