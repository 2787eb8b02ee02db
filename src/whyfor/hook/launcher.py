"""Starts an ingest, unless one is on its way that has not begun to read the spool.

Read only after an event that ends something.
"""

import posix
import time

import announce  # type: ignore[import-not-found]

PATIENCE = 600  # seconds: no started ingest waits longer than this for its turn
LEFT = b"bell"  # in place of an ingest's pid: left to whoever serves


def wake(folder: bytes, rung: bool) -> None:
    """Start one ingest, unless one is started already that has not begun to read the spool.

    `rung`: a running server was told, and is left to read it; one that was told before and did not
    come is not waited for.
    """
    command = announce.content(folder + b"/launch").splitlines()
    pending = folder + b"/pending"
    posix.closerange(3, 1024)  # an agent may wait for the end of a pipe that it left open here
    if not command:
        return
    fd, late = claim(pending, rung)
    if fd < 0:
        return
    if rung and not late:
        posix.write(fd, LEFT)
        return
    try:
        pid = spawn(command, announce.above(folder))
    except BaseException:
        posix.unlink(pending)
        raise
    posix.write(fd, b"%d" % pid)


def spawn(command: list[bytes], home: bytes) -> int:
    """Start a command of its own session that hears and says nothing; return its pid."""
    env = {name: value for name, value in posix.environ.items() if not name.startswith(b"GIT_")}
    env[b"WHYFOR_HOME"] = home
    null = [(posix.POSIX_SPAWN_OPEN, number, b"/dev/null", posix.O_RDWR, 0) for number in (0, 1, 2)]
    posix.chdir(b"/")
    return posix.posix_spawn(command[0], command, env, file_actions=null, setsid=True)


def claim(pending: bytes, rung: bool) -> tuple[int, bool]:
    """Open the file that says an ingest was started, for its pid; say whether it replaces one that
    never came.

    -1 if one is on its way.
    """
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL
    try:
        return posix.open(pending, flags, 0o600), False
    except FileExistsError:
        if not is_stale(pending, rung):
            return -1, False
        posix.unlink(pending)
        return posix.open(pending, flags, 0o600), True


def is_stale(pending: bytes, rung: bool) -> bool:
    """Return whether the ingest that this file announces will not come."""
    age = time.time() - posix.stat(pending).st_mtime
    pid = announce.content(pending)
    if pid == LEFT:
        return not rung or age > 5  # seconds: whoever serves takes it away as soon as it reads
    if not pid.isdigit():
        return age > 5  # its starter died before it could start anything
    try:
        posix.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    if announce.content(b"/proc/%s/stat" % pid).rpartition(b")")[2][:2] == b" Z":
        return True  # a zombie: many containers have no init process to reap it
    return age > PATIENCE  # another process has that number by now
