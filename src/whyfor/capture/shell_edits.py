"""What shell commands of agents change in files, seen by comparing the work tree before and after:
the process that hooks start where `init --shell-edits` is in effect.

    python -I -m whyfor.capture.shell_edits MOMENT PHASE AGENT SESSION CALL COMMAND FOLDER

PHASE is `prompt`, `before` or `after`, MOMENT the time in ns at which the hook began. What was
found is written to the spool as an announcement of its own. Nobody waits for this process, and
nobody hears from it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import closing, suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from whyfor.capture.spool import append_shell_edits
from whyfor.files import make_folders
from whyfor.git.place import find_work_tree, is_own
from whyfor.git.snapshots import NoSnapshot, SnapshotState, TreeSnapshot, WorkTreeSnapshots
from whyfor.locks import hold_lock
from whyfor.model.errors import WhyforError
from whyfor.model.shell_edits import ShellEdits, ShellFileDiff

FOLDER = "snapshots"  # below Whyfor's directory
LAG = 5_000_000  # ns by which a file system's clock may be behind
LONGEST = 600  # seconds of a command; whoever wrote what in a longer one is not told
KEPT = 86_400  # seconds after its last use that a folder is kept
COMMAND = 8000  # characters
_FILE = 256 << 10  # characters of one file's change
_ALL = 1 << 20
_OBJECTS = 64 << 20  # bytes of our objects, above which they are made anew
_WAIT = 3.0  # seconds for another snapshot of the same work tree
_POLL = 0.05


class OpenShellCall(msgspec.Struct, frozen=True):
    """A command that runs, and the work tree before it."""

    agent: str
    session: str
    at: int  # ns
    snapshot: TreeSnapshot | None  # None: it could not be taken
    skipped: str = ""
    shared: bool = False  # another session's command ran at the same time


class KeptSnapshots(msgspec.Struct):
    """What is kept of a work tree between commands."""

    state: SnapshotState = msgspec.field(default_factory=SnapshotState)
    open: dict[str, OpenShellCall] = {}


class ShellMoment(msgspec.Struct, frozen=True):
    """What a hook told of a command."""

    at: int  # ns
    phase: str  # prompt | before | after
    agent: str
    session: str
    call: str  # the agent's own id of it; empty if the hook has none
    command: str
    folder: Path

    @property
    def key(self) -> str:
        told = self.call or blake2b(self.command.encode("utf-8", "replace")).hexdigest()[:32]
        return f"{self.agent}:{self.session}:{told}"


def main(arguments: list[str]) -> None:
    """Take the snapshot that a hook asks for."""
    at, phase, agent, session, call, command, folder = arguments
    home = Path(os.environ["WHYFOR_HOME"])
    told = _unquoted(command)[:COMMAND]
    where = Path(_unquoted(folder) or folder)
    take(home, ShellMoment(int(at), phase, agent, session, call, told, where))


def _unquoted(command: str) -> str:
    """Return what stands between the quotes of a JSON string."""
    try:
        return msgspec.json.decode(f'"{command}"', type=str)
    except msgspec.DecodeError:
        return ""


def take(home: Path, moment: ShellMoment) -> None:
    """Take one snapshot; after a command, write down what it changed."""
    top = find_work_tree(moment.folder)
    if top is None or not is_own(top):
        return
    name = blake2b(os.fsencode(top), digest_size=12).hexdigest()
    folder = home / FOLDER / name
    if moment.phase == "after":
        _await_before(folder, moment)
    with closing(hold_lock(home / FOLDER / f"{name}.lock", _WAIT)):
        kept = _load(folder)
        try:
            found = _step(kept, top, folder, moment)
        finally:
            _save(folder, kept)
    if found is not None:
        append_shell_edits(home, moment.agent, str(top), found)


def _await_before(folder: Path, moment: ShellMoment) -> None:
    """Let the process go first that was started before the command: on a busy machine it may be
    the later one."""
    end = time.monotonic() + _WAIT
    while moment.key not in _load(folder).open and time.monotonic() < end:
        time.sleep(_POLL)


def _step(kept: KeptSnapshots, top: Path, folder: Path, moment: ShellMoment) -> ShellEdits | None:
    if moment.phase == "after":
        before = kept.open.pop(moment.key, None)
        return _changes(kept, top, folder, moment, before) if before else None
    begun = time.time_ns() - LONGEST * 1_000_000_000
    kept.open = {key: call for key, call in kept.open.items() if call.at > begun}
    if not kept.open and _size(folder) > _OBJECTS:
        kept.state = SnapshotState()
    snapshot, skipped = None, ""
    try:
        snapshot = WorkTreeSnapshots(top, folder).take(kept.state, moment.at - LAG)
    except (NoSnapshot, OSError) as reason:
        skipped = str(reason)
    if moment.phase == "before":
        own = (moment.agent, moment.session)
        others = [key for key, call in kept.open.items() if (call.agent, call.session) != own]
        for key in others:
            kept.open[key] = msgspec.structs.replace(kept.open[key], shared=True)
        opened = OpenShellCall(*own, moment.at, snapshot, skipped, bool(others))
        kept.open[moment.key] = opened
    return None


def _changes(
    kept: KeptSnapshots, top: Path, folder: Path, moment: ShellMoment, before: OpenShellCall
) -> ShellEdits:
    """What a command changed; or why that is not known."""
    found = ShellEdits(
        session_id=moment.session,
        call=moment.call,
        command=moment.command,
        top=str(top),
        began=before.at // 1_000_000,
        ended=moment.at // 1_000_000,
    )
    if before.snapshot is None:
        found.skipped = before.skipped
    elif before.shared:
        found.skipped = "another session ran a command at the same time"
    elif moment.at - before.at > LONGEST * 1_000_000_000:
        found.skipped = "it took too long"
    if found.skipped or before.snapshot is None:
        return found
    try:
        snapshots = WorkTreeSnapshots(top, folder)
        after = snapshots.take(kept.state, moment.at)
        found.files = _within_limits(snapshots.compare(before.snapshot, after), found)
        found.left_out |= dict.fromkeys(after.late, "it was written later too")
        found.left_out |= after.left_out
    except (NoSnapshot, OSError) as reason:
        found.skipped = str(reason)
    return found


def _within_limits(files: list[ShellFileDiff], found: ShellEdits) -> list[ShellFileDiff]:
    """Leave out what is too long, and what is private."""
    kept: list[ShellFileDiff] = []
    total = 0
    for file in files:
        text = file.diff + (file.whole or "")
        total += len(text)
        if "<private" in text.lower():
            found.left_out[file.path] = "it has private text"
        elif len(text) > _FILE or total > _ALL:
            found.left_out[file.path] = "too much of it changed"
        else:
            kept.append(file)
    return kept


# -- what is kept --------------------------------------------------------------------------------


def _load(folder: Path) -> KeptSnapshots:
    try:
        return msgspec.msgpack.decode((folder / "state").read_bytes(), type=KeptSnapshots)
    except (OSError, msgspec.DecodeError):
        return KeptSnapshots()


def _save(folder: Path, kept: KeptSnapshots) -> None:
    make_folders(folder)
    own = folder / f"state.{os.getpid()}"
    own.write_bytes(msgspec.msgpack.encode(kept))
    own.rename(folder / "state")


def _size(folder: Path) -> int:
    found = 0
    for parent, _, names in os.walk(folder / "objects"):
        for name in names:
            with suppress(OSError):
                found += (Path(parent) / name).stat().st_size
    return found


def prune_snapshots(home: Path, *, everything: bool = False) -> None:
    """Delete the snapshots of work trees that no command ran in for a day; or all of them."""
    folder = home / FOLDER
    with suppress(OSError):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_dir() and (everything or _is_old(path / "state")):
                shutil.rmtree(path, ignore_errors=True)
        if everything:
            shutil.rmtree(folder, ignore_errors=True)


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > KEPT
    except OSError:
        return True


if __name__ == "__main__":
    with suppress(WhyforError, OSError, ValueError, KeyError):
        os.umask(0o077)
        main(sys.argv[1:])
