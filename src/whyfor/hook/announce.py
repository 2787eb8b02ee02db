"""From an event to a line in the spool, and what follows from it.

Imports only what a bare interpreter holds already: `posix` is what `os` is made of, `_thread`
what `threading` is, and `os`, `json` or `re` would each cost more than all that is done here.
"""

import _thread
import posix
import sys
import time

WAKES = (
    b"post-commit post-rewrite post-merge "
    b"Stop StopFailure SessionEnd PreCompact AfterAgent agentStop sessionEnd preCompact"
).split()
TOLD = (
    b"WHYFOR_SESSION CLAUDE_CODE_SESSION_ID CLAUDECODE GEMINI_SESSION_ID GEMINI_CLI "
    b"CODEX_THREAD_ID "
    b"CODEX_SESSION_ID COPILOT_SESSION_ID AI_AGENT GIT_REFLOG_ACTION GIT_DIR GIT_WORK_TREE "
    b"WHYFOR_PROBE"
).split()
ASKS = b"UserPromptSubmit BeforeAgent userPromptSubmitted".split()
ENDS = b"SessionEnd sessionEnd".split()
# of an event in a private turn
OUTLINE = b"session_id sessionId transcript_path cwd hook_event_name".split()
# of the tool call an event tells of
FILES = b"file_path filePath path notebook_path absolute_path".split()
PATH = 5000  # bytes of one of these, and what stands before it
BLANK = b" \t\\nrt"  # escaped ones too
# What an agent tells again when a turn ends. Some of it may have been said in a pause; all of it is
# in its transcript.
RETOLD = {
    b"AfterAgent": (b"prompt", b"prompt_response"),
    b"Stop": (b"last_assistant_message",),
    b"SubagentStop": (b"last_assistant_message",),
}
GENERATIONS = 12
PIECES = 1000  # of one write; systems take 1024
# How long stdin is waited for, in seconds. Agents write what they have to say at once and close the
# pipe; where nobody closes it, they must not wait for us. A hook of ours may take 5 s, which `init`
# asks for, and 3 s at a session's end, where Codex allows no more.
# without a byte, behind a payload that is whole JSON already: the pipe is open, but nobody writes
# to it
PAUSE = 0.1
# pauses without a byte; not a time, because on a busy machine each takes longer, as the writer does
SILENCE = 20
LONGEST = 4.0  # in all
LAST = 2.5  # in all, at a session's end
# bytes of a payload that are kept; the rest is read and dropped, so that its writer sees no error
LARGEST = 32 << 20
# Bytes of a payload that are searched for private text, at a microsecond each at worst, and how
# many words `private` a larger one may have to be asked whether one of them is a tag. Of what is
# not searched nothing is written down.
SEARCHED = 256 << 10
WORDS = 1000
PATIENCE = 600  # seconds: no started ingest waits longer than this for its turn
LEFT = b"bell"  # in place of an ingest's pid: left to whoever serves
ASK = (
    "Whyfor keeps the story behind each commit. You just made commit %s; please tell it once, by "
    "running: "
    "whyfor note %s --title 'under 50 characters' --intent 'problem, solution, effect' "
    "--alternative 'what else you considered, and why not' --tag "
    "FEATURE|BUGFIX|REFACTORING|TEST|DOCS|CHORE"
)


def main(argv: list[bytes]) -> None:
    given = arguments(argv[1:])
    event = given[b"event"]
    home = above(above(argv[0] if argv[0][:1] == b"/" else posix.getcwdb() + b"/" + argv[0]))
    payload, whole = stdin(LAST if event in ENDS else LONGEST)
    if not whole:
        given[b"incomplete"] = b"true"
        payload = [outline(b"".join(payload))]
    payload, dropped = without_private(payload)
    payload = hidden(home + b"/hook", event, payload, dropped or not whole)
    probe = b"WHYFOR_PROBE" in posix.environ
    heard = probe or not unwanted(home + b"/hook", given[b"agent"], payload)
    if heard:
        for name in RETOLD.get(event, ()):
            payload = [emptied(b"".join(payload), name)]
        append(home, [b"\n", header(given), b"\t", *payload, b"\n"])
    if probe:
        return  # only asked whether we are there
    if event == b"SessionStart" and given[b"agent"] == b"claude":
        export_session(b"".join(payload))
    if not heard:
        return
    rung = ring(home + b"/hook")
    if b"annotate" in given:
        ask(home + b"/hook", event, b"".join(payload))
    if event in WAKES:
        wake(home + b"/hook", rung)


def arguments(argv: list[bytes]) -> dict[bytes, bytes]:
    """Options by name; the first bare word is the event, those after it are what git told its
    hook."""
    given = {b"agent": b"", b"event": b"", b"args": b""}
    words = iter(argv)
    for word in words:
        if word in (b"--agent", b"--sha", b"--chain"):
            given[word[2:]] = next(words, b"")
        elif word in (b"--annotate", b"--rebasing"):
            given[word[2:]] = b"true"
        elif not given[b"event"]:
            given[b"event"] = word
        elif (
            given[b"event"] != b"pre-push" or not given[b"args"]
        ):  # after the remote's name comes its address
            given[b"args"] += b"," * bool(given[b"args"]) + quoted(word)
    return given


def stdin(longest: float) -> tuple[list[bytes], bool]:
    """Return what we were told within so many seconds, on one line, and whether that is all of
    it.

    Read by a thread, because a read cannot be given up: who holds the other end may neither
    write nor close it. In pieces, because a copy of a big one takes time.
    """
    if sys.stdin is None or posix.isatty(0):
        return [], True
    parts: list[bytes] = []
    size = [0]
    ended = _thread.allocate_lock()
    ended.acquire()
    try:
        _thread.start_new_thread(read_all, (parts, size, ended))
    except RuntimeError:
        read_all(parts, size, ended)  # no thread to be had
    whole = await_end(parts, size, ended, longest) and size[0] <= LARGEST
    told = parts[:]  # the thread may still be adding to the other list
    return (told if len(told) < PIECES else [b"".join(told)]), whole


def read_all(parts: list[bytes], size: list[int], ended: "_thread.LockType") -> None:
    """Collect stdin up to LARGEST and count the rest; release the lock at its end."""
    try:
        while part := read(0):
            if size[0] <= LARGEST:
                parts.append(part.replace(b"\n", b" "))
            size[0] += len(part)
        ended.release()
    except MemoryError:
        pass  # what is there is not all of it; nobody may be told


def await_end(
    parts: list[bytes], size: list[int], ended: "_thread.LockType", longest: float
) -> bool:
    """Return whether all that can be had was read; False after SILENCE, or so many seconds."""
    begun = time.monotonic()
    known = looked = quiet = 0
    while not ended.acquire(timeout=PAUSE):
        if size[0] > known:
            known, quiet = size[0], 0
        else:
            quiet += 1
        if quiet and looked < known <= SEARCHED:
            looked = known
            if is_whole(parts):
                return True
        if quiet >= SILENCE or time.monotonic() - begun >= longest:
            return False
    return True


def is_whole(parts: list[bytes]) -> bool:
    """Return whether this is JSON from its first bracket to its last."""
    if parts[-1].rstrip()[-1:] not in (b"}", b"]"):
        return False
    import private  # type: ignore[import-not-found]  # here: only where nobody closes the pipe

    sound: bool = private.Json(b"".join(parts), frozenset()).sound
    return sound


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


# -- the header ----------------------------------------------------------------------------------


def header(given: dict[bytes, bytes]) -> bytes:
    environ = posix.environ
    env = b",".join(b'"%s":%s' % (name, quoted(environ[name])) for name in TOLD if name in environ)
    fields = [
        b'{"v":1,"at":%d,"pid":%d,"ppid":%d'
        % (time.time_ns() // 1_000_000, posix.getpid(), posix.getppid()),
        b'"agent":%s,"event":%s' % (quoted(given[b"agent"]), quoted(given[b"event"])),
        b'"cwd":%s,"env":{%s}' % (quoted(shown(cwd())), env),
        b'"chain":[%s]' % (told_chain(given[b"chain"]) if b"chain" in given else chain()),
    ]
    if given[b"agent"] == b"git":
        fields.append(
            b'"sha":%s,"args":[%s]' % (quoted(given.get(b"sha") or head()), given[b"args"])
        )
    for name in (b"rebasing", b"incomplete"):
        if name in given:
            fields.append(b'"%s":true' % name)
    return b",".join(fields) + b"}"


def quoted(raw: bytes) -> bytes:
    text = raw.decode("utf-8", "replace")
    return (
        b'"%s"'
        % "".join([c if c >= " " and c not in '"\\' else f"\\u{ord(c):04x}" for c in text]).encode()
    )


def shown(path: bytes) -> bytes:
    """A path with each byte that is not UTF-8 as U+FFFD and its two digits, so that the same
    bytes can be had again."""
    text = path.decode("utf-8", "surrogateescape")
    odd = [f"\ufffd{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else c for c in text]
    return "".join(odd).encode()


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
    """The same, as a shell saw it before we were started in the background; starts it did not
    read are read now."""
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


# -- what is not wanted --------------------------------------------------------------------------


def unwanted(folder: bytes, agent: bytes, payload: list[bytes]) -> bool:
    """Whether a person paused us, or excluded this project or agent: then nothing of this is
    written anywhere."""
    excluded = content(folder + b"/excluded")
    try:
        paused = posix.listdir(folder + b"/paused")
    except OSError:
        paused = []
    if not excluded and not paused:
        return False
    told = b"".join(payload)
    named = (cwd(), field(told, b"cwd"), posix.environ.get(b"CLAUDE_PROJECT_DIR"))
    places = [place for place in named if place and b"\0" not in place]
    shared = [git_folder(place) for place in places]
    if agent == b"git" and b"GIT_DIR" in posix.environ:
        shared.append(common(posix.environ[b"GIT_DIR"]))
    if is_excluded(excluded, agent, places, shared) or is_paused(
        folder, paused, agent, told, places, shared
    ):
        return True
    files = [
        path for name in FILES if (path := field(told, name))[:1] == b"/" and b"\0" not in path
    ]
    return is_excluded(excluded, agent, files, [git_folder(path) for path in files])


def emptied(payload: bytes, name: bytes) -> bytes:
    """With nothing in one of its strings; of a string that never ends, nothing that follows
    either."""
    before, key, rest = payload.partition(b'"%s"' % name)
    start = rest.lstrip(b" :\t")
    if not key or start[:1] != b'"':
        return payload
    end = start.find(b'"', 1)
    while end >= 0:
        back = end
        while start[back - 1] == 92:  # a backslash; each is looked at once
            back -= 1
        if (end - back) % 2 == 0:
            break
        end = start.find(b'"', end + 1)
    return before + key + b':""' + (start[end + 1 :] if end >= 0 else b"}")


def is_paused(
    folder: bytes,
    names: list[bytes],
    agent: bytes,
    told: bytes,
    places: list[bytes],
    shared: list[bytes],
) -> bool:
    """By one of the files there: each is a pause of everything, of a repository or of one
    session."""
    environ = posix.environ
    sessions = [field(told, b"session_id"), field(told, b"sessionId")]
    sessions += [environ[name].rpartition(b":")[2] for name in TOLD if name in environ]
    now = time.time_ns() // 1_000_000
    for name in names:
        lines = [
            line.partition(b" ")[::2] for line in content(folder + b"/paused/" + name).split(b"\n")
        ]
        facts = dict(lines)
        until = facts.get(b"until", b"")
        if not facts.get(b"since", b"").isdigit() or (until.isdigit() and int(until) <= now):
            continue
        if b"session" in facts:
            whose, _, ident = facts[b"session"].partition(b":")
            if ident in sessions and (not whose or agent in (whose, b"git")):
                return True
            continue
        trees = [value + b"/" for key, value in lines if key == b"folder"]
        if (
            b"repository" not in facts
            or any((at + b"/").startswith(tree) for at in places for tree in trees)
            or any(same(found, facts[b"repository"]) for found in shared)
        ):
            return True
    return False


def is_excluded(listed: bytes, agent: bytes, places: list[bytes], shared: list[bytes]) -> bool:
    """By a line of the list that the configuration was written out to: `path GLOB`, `project
    GLOB`, `agent NAME`."""
    projects = b""
    for line in listed.splitlines():
        kind, _, pattern = line.partition(b" ")
        if kind == b"agent" and pattern == agent:
            return True
        if kind == b"path" and any(covers(pattern, at) for at in places):
            return True
        if kind == b"project":
            projects = projects or b"\n".join(content(at + b"/config") for at in shared if at)
            if any(covers(pattern, url) for url in remotes(projects)):
                return True
    return False


def remotes(config: bytes) -> list[bytes]:
    """The addresses in git's configuration as hosts and paths: `github.com/acme/shop`, whatever
    the form."""
    found = []
    for line in config.splitlines():
        name, _, url = line.strip().partition(b"=")
        if name.strip().lower() in (b"url", b"pushurl"):
            url = (
                url.strip()
                .strip(b'"')
                .lower()
                .rpartition(b"://")[2]
                .rpartition(b"@")[2]
                .rstrip(b"/")
            )
            host, _, path = (
                (url[:-4] if url.endswith(b".git") else url).replace(b":", b"/", 1).partition(b"/")
            )
            port, _, rest = path.partition(b"/")
            found.append(host + b"/" + (rest if port.isdigit() else path).strip(b"/"))
    return found


def covers(pattern: bytes, text: bytes) -> bool:
    """The thing itself, or what is below it."""
    return matches(text, pattern) or matches(text, pattern + b"/*")


def matches(text: bytes, pattern: bytes) -> bool:
    """`*` stands for anything; work is bounded by the product of both lengths."""
    at = of = 0
    star, held = -1, 0
    while at < len(text):
        if of < len(pattern) and pattern[of] == 42:
            star, held = of, at
            of += 1
        elif of < len(pattern) and pattern[of] == text[at]:
            at, of = at + 1, of + 1
        elif star >= 0:
            held += 1
            at, of = held, star + 1
        else:
            return False
    return not pattern[of:].strip(b"*")


def git_folder(place: bytes) -> bytes:
    """The git folder of the repository around a place, the one that all its work trees share;
    none outside."""
    while place:
        try:
            posix.stat(place + b"/.git")
        except OSError:
            place = above(place)
            continue
        pointer = content(place + b"/.git")
        if not pointer.startswith(b"gitdir:"):
            return place + b"/.git"
        own = pointer[7:].strip()
        return common(own if own[:1] == b"/" else place + b"/" + own)
    return b""


def common(own: bytes) -> bytes:
    """Of a work tree's own git folder."""
    shared = content(own + b"/commondir").strip()
    return own if not shared else shared if shared[:1] == b"/" else own + b"/" + shared


def same(one: bytes, other: bytes) -> bool:
    try:
        a, b = posix.stat(one), posix.stat(other)
    except OSError:
        return one == other
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


# -- <private> -----------------------------------------------------------------------------------


def without_private(parts: list[bytes]) -> tuple[list[bytes], bool]:
    """Return a payload without what stands between private tags, and whether something did.

    What is no JSON is one text. One that is too large to be searched is taken to be private as a
    whole: whose event it was is all that is left.
    """
    end = b""
    for part in parts:
        if b"private" in (end + part).lower():
            break
        end = part[-6:]
    else:
        return parts, False
    payload = b"".join(parts)
    if len(payload) > SEARCHED and payload.lower().count(b"private") > WORDS:
        return [outline(payload)], True
    import private  # here: most payloads have none, and never pay for it

    if not private.marked(payload):
        return [payload], False
    if len(payload) > SEARCHED:
        return [outline(payload)], True
    spans = private.spans(payload)
    left: bytes = private.without(payload, private.text_spans(payload) if spans is None else spans)
    return [left], len(left) < len(payload)


def hidden(folder: bytes, event: bytes, payload: list[bytes], dropped: bool) -> list[bytes]:
    """What may be told of an event: of a turn whose prompt was private, only that there was one."""
    place = folder + b"/private"
    try:
        sessions = posix.listdir(place)
    except OSError:
        sessions = []
    if not dropped and not sessions:
        return payload
    told = b"".join(payload)
    ident = field(told, b"session_id") or field(told, b"sessionId")
    name = bytes([c if chr(c).isalnum() or c in b"-_" else 95 for c in ident])
    if event in ASKS:
        # also where nobody could look at it
        if dropped and not field(told, b"prompt").strip(BLANK):
            if name:
                make_folder(place)
                posix.close(posix.open(place + b"/" + name, posix.O_WRONLY | posix.O_CREAT, 0o600))
            return [outline(told)]
        forget(place, name, sessions)
    elif name in sessions:
        if event in ENDS:
            forget(place, name, sessions)
        return [outline(told)]
    return [told]


def forget(place: bytes, name: bytes, sessions: list[bytes]) -> None:
    if name in sessions:
        posix.unlink(place + b"/" + name)
        if len(sessions) == 1:
            posix.rmdir(place)  # hooks look no further then


def outline(told: bytes) -> bytes:
    """Whose event it was, and nothing of what was said. `told` may be torn anywhere."""
    found = []
    for name in OUTLINE:
        rest = told.partition(b'"%s"' % name)[2][:PATH].lstrip(b" :\t")
        value, closing, _ = rest[1:].partition(b'"')
        if rest[:1] == b'"' and value and closing and value[-1:] != b"\\":
            found.append(b'"%s":"%s"' % (name, value))
    return b"{%s}" % b",".join(found)


# -- what follows from an event ------------------------------------------------------------------


def export_session(payload: bytes) -> None:
    """Commands the agent runs from now on know which session they belong to."""
    path = posix.environ.get(b"CLAUDE_ENV_FILE")
    ident = field(payload, b"session_id") or posix.environ.get(b"CLAUDE_CODE_SESSION_ID", b"")
    if path and ident.replace(b"-", b"").replace(b"_", b"").isalnum():
        fd = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o600)
        posix.write(fd, b"\nexport WHYFOR_SESSION='claude:%s'\n" % ident)


def ring(folder: bytes) -> bool:
    """Whether somebody serves and was told: this pipe has a reader only while `whyfor serve`
    lives."""
    try:
        fd = posix.open(folder + b"/bell", posix.O_WRONLY | posix.O_NONBLOCK)
        return posix.write(fd, b".") == 1
    except OSError:
        return False


def wake(folder: bytes, rung: bool) -> None:
    """Start one ingest, unless one is started already that has not begun to read the spool.

    Whoever serves is left to read it; one who was told before and did not come is not waited for.
    """
    command = content(folder + b"/launch").splitlines()
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
    env = {name: value for name, value in posix.environ.items() if not name.startswith(b"GIT_")}
    env[b"WHYFOR_HOME"] = above(folder)
    null = [(posix.POSIX_SPAWN_OPEN, number, b"/dev/null", posix.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        posix.chdir(b"/")
        pid = posix.posix_spawn(command[0], command, env, file_actions=null, setsid=True)
    except BaseException:
        posix.unlink(pending)
        raise
    posix.write(fd, b"%d" % pid)


def claim(pending: bytes, rung: bool) -> tuple[int, bool]:
    """The file that says an ingest was started, open for its pid, and whether it replaces one
    that never came.

    -1 if one is on its way.
    """
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL
    try:
        return posix.open(pending, flags, 0o600), False
    except FileExistsError:
        if not stale(pending, rung):
            return -1, False
        posix.unlink(pending)
        return posix.open(pending, flags, 0o600), True


def stale(pending: bytes, rung: bool) -> bool:
    age = time.time() - posix.stat(pending).st_mtime
    pid = content(pending)
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
    # raises the second time
    posix.open(asked + b"/" + sha[:7], posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600)
    text = (ASK % (sha.decode(), sha.decode())).encode()
    posix.write(
        1,
        b'{"hookSpecificOutput":{"hookEventName":%s,"additionalContext":%s}}'
        % (quoted(event), quoted(text)),
    )


def committed(payload: bytes) -> bytes:
    """The commit a shell command made, by the agent's own account or by what git prints: `[main
    126e95e] subject`."""
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


# -- small things --------------------------------------------------------------------------------


def field(payload: bytes, name: bytes) -> bytes:
    """A string by its key. Inside a string the key's quotes would be escaped: nothing said there
    is mistaken for it."""
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
