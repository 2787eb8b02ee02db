"""From an event to a line in the spool, and what follows from it.

Imports only what a bare interpreter holds already: `posix` is what `os` is made of, and `os`, `json` or `re` would each
cost more than all that is done here.
"""

import posix
import sys
import time

WAKES = (
    b"post-commit post-rewrite post-merge "
    b"Stop StopFailure SessionEnd PreCompact AfterAgent agentStop sessionEnd preCompact"
).split()
TOLD = (
    b"BACKSTORY_SESSION CLAUDE_CODE_SESSION_ID CLAUDECODE GEMINI_SESSION_ID GEMINI_CLI CODEX_THREAD_ID "
    b"CODEX_SESSION_ID COPILOT_SESSION_ID AI_AGENT GIT_REFLOG_ACTION GIT_DIR GIT_WORK_TREE BACKSTORY_PROBE"
).split()
GENERATIONS = 12
PIECES = 1000  # of one write; systems take 1024
PATIENCE = 600  # seconds: no started ingest waits longer than this for its turn
ASK = (
    "Backstory keeps the story behind each commit. You just made commit %s; please tell it once, by running: "
    "backstory note %s --title 'under 50 characters' --intent 'problem, solution, effect' "
    "--alternative 'what else you considered, and why not' --tag FEATURE|BUGFIX|REFACTORING|TEST|DOCS|CHORE"
)


def main(argv: list[bytes]) -> None:
    given = arguments(argv[1:])
    event = given[b"event"]
    home = above(above(argv[0] if argv[0][:1] == b"/" else posix.getcwdb() + b"/" + argv[0]))
    payload = stdin()
    append(home, [b"\n", header(given), b"\t", *payload, b"\n"])
    if b"BACKSTORY_PROBE" in posix.environ:
        return  # only asked whether we are there
    if event == b"SessionStart" and given[b"agent"] == b"claude":
        export_session(b"".join(payload))
    if b"annotate" in given:
        ask(home + b"/hook", event, b"".join(payload))
    if event in WAKES:
        wake(home + b"/hook")


def arguments(argv: list[bytes]) -> dict[bytes, bytes]:
    """Options by name; the first bare word is the event, those after it are what git told its hook."""
    given = {b"agent": b"", b"event": b"", b"args": b""}
    words = iter(argv)
    for word in words:
        if word in (b"--agent", b"--sha", b"--chain"):
            given[word[2:]] = next(words, b"")
        elif word in (b"--annotate", b"--rebasing"):
            given[word[2:]] = b"true"
        elif not given[b"event"]:
            given[b"event"] = word
        elif given[b"event"] != b"pre-push" or not given[b"args"]:  # after the remote's name comes its address
            given[b"args"] += b"," * bool(given[b"args"]) + quoted(word)
    return given


def stdin() -> list[bytes]:
    """What we were told, on one line, without what is private; in pieces, because a copy of a big one takes time."""
    parts: list[bytes] = []
    private, end = False, b""
    if sys.stdin is None or posix.isatty(0):
        return parts
    while part := read(0):
        part = part.replace(b"\n", b" ")
        private = private or b"private" in (end + part).lower()
        end = part[-6:]
        parts.append(part)
    if private:
        return [without_private(b"".join(parts))]
    return parts if len(parts) < PIECES else [b"".join(parts)]


def append(home: bytes, line: list[bytes]) -> None:
    """One write to a file opened for appending: no other hook's line comes between."""
    folder = home + b"/spool"
    path = folder + b"/%04d-%02d-%02d.spool" % time.gmtime()[:3]
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND
    try:
        fd = posix.open(path, flags, 0o600)
    except FileNotFoundError:
        make_folder(folder)
        fd = posix.open(path, flags, 0o600)
    posix.writev(fd, line)


def make_folder(folder: bytes) -> None:
    try:  # noqa: SIM105 - contextlib would have to be imported
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        pass  # another hook was faster


# -- the header --------------------------------------------------------------------------------------------------------


def header(given: dict[bytes, bytes]) -> bytes:
    environ = posix.environ
    env = b",".join(b'"%s":%s' % (name, quoted(environ[name])) for name in TOLD if name in environ)
    fields = [
        b'{"v":1,"at":%d,"pid":%d,"ppid":%d' % (time.time_ns() // 1_000_000, posix.getpid(), posix.getppid()),
        b'"agent":%s,"event":%s' % (quoted(given[b"agent"]), quoted(given[b"event"])),
        b'"cwd":%s,"env":{%s}' % (quoted(cwd()), env),
        b'"chain":[%s]' % (told_chain(given[b"chain"]) if b"chain" in given else chain()),
    ]
    if given[b"agent"] == b"git":
        fields.append(b'"sha":%s,"args":[%s]' % (quoted(given.get(b"sha") or head()), given[b"args"]))
    if b"rebasing" in given:
        fields.append(b'"rebasing":true')
    return b",".join(fields) + b"}"


def quoted(raw: bytes) -> bytes:
    text = raw.decode("utf-8", "replace")
    return b'"%s"' % "".join([c if c >= " " and c not in '"\\' else f"\\u{ord(c):04x}" for c in text]).encode()


def cwd() -> bytes:
    try:
        return posix.getcwdb()
    except OSError:
        return b""  # removed under our feet


def chain() -> bytes:
    """Our ancestors, nearest first, where the system shows them."""
    found: list[bytes] = []
    pid = posix.getppid()
    while pid > 0 and len(found) < GENERATIONS:
        before, _, after = content(b"/proc/%d/stat" % pid).rpartition(b")")
        fields = after.split()
        if len(fields) < 20:
            break
        found.append(b"[%d,%s,%s]" % (pid, fields[19], quoted(before.partition(b"(")[2])))
        pid = int(fields[1])
    return b",".join(found) if found else b'[%d,0,""]' % pid


def told_chain(words: bytes) -> bytes:
    """The same, as a shell saw it before we were started in the background; starts it did not read are read now."""
    items = [word.split(b":", 2) for word in words.split()]
    return b",".join(
        b"[%s,%s,%s]" % (item[0], item[1] if item[1] != b"0" else started(item[0]), quoted(item[2]))
        for item in items
        if len(item) == 3 and item[0].isdigit() and item[1].isdigit()
    )


def started(pid: bytes) -> bytes:
    fields = content(b"/proc/%s/stat" % pid).rpartition(b")")[2].split()
    return fields[19] if len(fields) >= 20 else b"0"


def head() -> bytes:
    """The commit HEAD is at, from git's own files."""
    git = posix.environ.get(b"GIT_DIR", b".git")
    pointer = content(git)  # a work tree beside the main one has a file here
    if pointer.startswith(b"gitdir:"):
        git = pointer[7:].strip()
    name = content(git + b"/HEAD").strip()
    if not name.startswith(b"ref: "):
        return name
    name = name[5:]
    common = content(git + b"/commondir").strip()
    shared = git if not common else common if common[:1] == b"/" else git + b"/" + common
    loose = content(git + b"/" + name) or content(shared + b"/" + name)
    if loose:
        return loose.strip()
    before, found, _ = content(shared + b"/packed-refs").partition(b" " + name + b"\n")
    return before.rpartition(b"\n")[2] if found else b""


# -- <private> ---------------------------------------------------------------------------------------------------------


def without_private(payload: bytes) -> bytes:
    """Without what stands between private tags, nested or not; one never closed reaches to the end of its string.

    `<` and `>` may be written as escapes, and those escaped again. Each byte is looked at a fixed number of times.
    """
    lower = payload.lower()  # the same length: only ASCII changes
    is_json = payload[:64].lstrip()[:1] == b"{"
    kept = []
    done = at = depth = end = 0  # end: of the string we are in
    while (word := lower.find(b"private", at)) >= 0:
        if depth and word > end:
            done, depth = end, 0  # never closed
        at = word + 7
        start, closing = tag_start(lower, word, done)
        stop = tag_end(lower, at)
        if start < 0 or stop < 0:
            continue
        at = stop
        if closing and depth:
            depth -= 1
            done = stop
        elif not closing:
            if not depth:
                kept.append(payload[done:start])
                if stop > end:
                    end = string_end(payload, stop) if is_json else len(payload)
            depth += 1
    kept.append(payload[end if depth else done :])
    return b"".join(kept)


def tag_start(lower: bytes, word: int, floor: int) -> tuple[int, bool]:
    """Where the tag around this word begins, and whether it is a closing one; -1 if there is none."""
    closing = lower[word - 1 : word] == b"/"
    at = backslashes(lower, word - 1, floor) if closing else word
    if lower[at - 1 : at] == b"<":
        return at - 1, closing
    if lower[at - 5 : at] == b"u003c":
        start = backslashes(lower, at - 5, floor)
        return (start if start < at - 5 else -1), closing
    return -1, closing


def tag_end(lower: bytes, at: int) -> int:
    if lower[at : at + 1] == b">":
        return at + 1
    stop = lower.find(b"u003e", at, at + 64)
    return stop + 5 if stop > at and not lower[at:stop].strip(b"\\") else -1


def backslashes(data: bytes, stop: int, floor: int) -> int:
    """Where the run of backslashes that ends here begins."""
    while stop > floor and data[stop - 1] == 92:
        stop -= 1
    return stop


def string_end(payload: bytes, at: int) -> int:
    """The quote that ends the JSON string we are in."""
    start = at
    while (quote := payload.find(b'"', at)) >= 0:
        if (quote - backslashes(payload, quote, start)) % 2 == 0:
            return quote
        at = quote + 1
    return len(payload)


# -- what follows from an event ----------------------------------------------------------------------------------------


def export_session(payload: bytes) -> None:
    """Commands the agent runs from now on know which session they belong to."""
    path = posix.environ.get(b"CLAUDE_ENV_FILE")
    ident = field(payload, b"session_id") or posix.environ.get(b"CLAUDE_CODE_SESSION_ID", b"")
    if path and ident.replace(b"-", b"").replace(b"_", b"").isalnum():
        fd = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o600)
        posix.write(fd, b"\nexport BACKSTORY_SESSION='claude:%s'\n" % ident)


def wake(folder: bytes) -> None:
    """Start one ingest, unless one is started already that has not begun to read the spool."""
    command = content(folder + b"/launch").splitlines()
    pending = folder + b"/pending"
    posix.closerange(3, 1024)  # an agent may wait for the end of a pipe that it left open here
    if not command or (fd := claim(pending)) < 0:
        return
    env = {name: value for name, value in posix.environ.items() if not name.startswith(b"GIT_")}
    env[b"BACKSTORY_HOME"] = above(folder)
    null = [(posix.POSIX_SPAWN_OPEN, number, b"/dev/null", posix.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        posix.chdir(b"/")
        pid = posix.posix_spawn(command[0], command, env, file_actions=null, setsid=True)
    except BaseException:
        posix.unlink(pending)
        raise
    posix.write(fd, b"%d" % pid)


def claim(pending: bytes) -> int:
    """The file that says an ingest was started, open for its pid; -1 if one is on its way."""
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL
    try:
        return posix.open(pending, flags, 0o600)
    except FileExistsError:
        if not stale(pending):
            return -1
        posix.unlink(pending)
        return posix.open(pending, flags, 0o600)


def stale(pending: bytes) -> bool:
    age = time.time() - posix.stat(pending).st_mtime
    pid = content(pending)
    if not pid.isdigit():
        return age > 5  # its starter died before it could start anything
    try:
        posix.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    if content(b"/proc/%s/stat" % pid).rpartition(b")")[2][:2] == b" Z":
        return True  # dead, and in many containers nobody buries it
    return age > PATIENCE  # another process has that number by now


def ask(folder: bytes, event: bytes, payload: bytes) -> None:
    """Once per commit the agent made: would it write down why?"""
    sha = committed(payload)
    if not sha or sys.stdout is None:  # closed: the spool may have its number by now
        return
    asked = folder + b"/asked"
    make_folder(asked)
    posix.open(asked + b"/" + sha[:7], posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600)  # raises the second time
    text = (ASK % (sha.decode(), sha.decode())).encode()
    posix.write(
        1, b'{"hookSpecificOutput":{"hookEventName":%s,"additionalContext":%s}}' % (quoted(event), quoted(text))
    )


def committed(payload: bytes) -> bytes:
    """The commit a shell command made, by the agent's own account or by what git prints: `[main 126e95e] subject`."""
    told = payload.partition(b'"gitOperation"')[2][:200]
    if told and is_sha(sha := field(told, b"sha")):
        return sha
    command, _, answer = payload.partition(b'"tool_response"')
    if b"git" not in command or b"commit" not in command:
        return b""
    for piece in answer.split(b"[")[1:]:
        words = piece[:300].partition(b"] ")[0].split(b" ")
        if len(words) > 1 and is_sha(words[-1]) and b"\\" not in piece[: piece.find(b"]")]:
            return words[-1]
    return b""


def is_sha(word: bytes) -> bool:
    return 7 <= len(word) <= 64 and not word.strip(b"0123456789abcdef")


# -- small things ------------------------------------------------------------------------------------------------------


def field(payload: bytes, name: bytes) -> bytes:
    """A string by its key. Inside a string the key's quotes would be escaped: nothing said there is mistaken for it."""
    rest = payload.partition(b'"%s"' % name)[2][:300].lstrip(b" :\t")
    return rest[1:].partition(b'"')[0] if rest[:1] == b'"' else b""


def content(path: bytes) -> bytes:
    """A small file's bytes; none if it cannot be read."""
    try:
        fd = posix.open(path, posix.O_RDONLY)
    except OSError:
        return b""
    parts = []
    while part := read(fd):
        parts.append(part)
    posix.close(fd)
    return b"".join(parts)


def read(fd: int) -> bytes:
    try:
        return posix.read(fd, 1 << 16)
    except OSError:
        return b""


def above(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]
