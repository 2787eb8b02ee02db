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
    b"CODEX_SESSION_ID COPILOT_SESSION_ID QWEN_CODE_SESSION_ID GROK_SESSION_ID CRUSH_SESSION_ID "
    b"AI_AGENT GIT_REFLOG_ACTION GIT_DIR GIT_WORK_TREE "
    b"WHYFOR_PROBE"
).split()
ENDS = b"SessionEnd sessionEnd".split()
FLAGS = b"--annotate --rebasing --remember --recall --rules".split()
# of an event in a private turn
OUTLINE = b"session_id sessionId transcript_path cwd hook_event_name".split()
PATH = 5000  # bytes of one of these, and what stands before it
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


def main(argv: list[bytes]) -> None:
    """Write one event to the spool, unless it is unwanted, and do what follows from it."""
    began = time.time_ns()
    given = arguments(argv[1:])
    event = given[b"event"]
    home = above(above(argv[0] if argv[0][:1] == b"/" else posix.getcwdb() + b"/" + argv[0]))
    folder = home + b"/hook"
    payload = received(folder, given)
    probe = b"WHYFOR_PROBE" in posix.environ
    heard = probe or not is_unwanted(folder, given[b"agent"], payload)
    told = remembered(folder, given, payload) if heard and not probe else b""
    if heard and not probe and b"rules" in given:
        told = ruled(folder, given, payload)
    if heard:
        for name in RETOLD.get(event, ()):
            payload = [emptied(b"".join(payload), name)]
        append(home, [b"\n", header(given), b"\t", *payload, b"\n"])
    if probe:
        return  # only asked whether we are there
    if event == b"SessionStart" and given[b"agent"] == b"claude":
        export_session(b"".join(payload))
    if told:
        posix.write(1, told)
    if heard:
        follow(folder, given, payload)
        if b"snapshot" in given:
            snapshot(folder, given, payload, began)
        if b"ask" in given and not told and b"dropped" not in given:
            ask_server(home, given, payload)


def remembered(folder: bytes, given: dict[bytes, bytes], payload: list[bytes]) -> bytes:
    """Return what this session is to be told of earlier ones, for agents whose hook says
    `--remember` (at its start) or `--recall` (with a prompt)."""
    if b"remember" not in given and b"recall" not in given:
        return b""
    try:
        told: bytes
        if b"recall" in given:
            import prompt_notes  # type: ignore[import-not-found]  # here: few events need it

            told = prompt_notes.answer(folder, given, b"".join(payload))
        else:
            import memory_block  # type: ignore[import-not-found]  # here: few events need it

            told = memory_block.answer(folder, given, b"".join(payload))
    except Exception:  # noqa: BLE001 - the event is written down all the same
        return b""
    return told


def ruled(folder: bytes, given: dict[bytes, bytes], payload: list[bytes]) -> bytes:
    """Return what the person's rules answer to a request, for agents whose hook says `--rules`;
    empty unless they are sure."""
    try:
        import rule_answer  # type: ignore[import-not-found]  # here: few events need it

        told: bytes = rule_answer.answer(folder, given, b"".join(payload))
    except Exception:  # noqa: BLE001 - the person is asked, as without us
        return b""
    return told


def ask_server(home: bytes, given: dict[bytes, bytes], payload: list[bytes]) -> None:
    """Print what the person answers in the browser, for agents whose hook says `--ask` and the port
    at which they ask by themselves. Their dialog is shown meanwhile."""
    if not content(home + b"/serve.json"):
        return
    import browser_answer  # type: ignore[import-not-found]  # here: few events need it

    told = browser_answer.answer(home, given[b"agent"], b"".join(payload), given[b"ask"])
    if told:
        posix.write(1, told)


def received(folder: bytes, given: dict[bytes, bytes]) -> list[bytes]:
    """Return what of our stdin may be written; note in `given` if not all of it came."""
    event = given[b"event"]
    payload, complete = stdin(LAST if event in ENDS else LONGEST)
    if not complete:
        given[b"incomplete"] = b"true"
        payload = [outline(b"".join(payload))]
    payload, dropped = without_private(payload)
    dropped = dropped or not complete
    if dropped:
        given[b"dropped"] = b"true"
    turns = folder + b"/private"
    if not dropped and not listed(turns):
        return payload
    import private_turns  # type: ignore[import-not-found]  # here: few events need it

    told = b"".join(payload)
    if not private_turns.is_hidden(turns, event, told, dropped):
        return [told]
    given[b"dropped"] = b"true"
    return [outline(told)]


def follow(folder: bytes, given: dict[bytes, bytes], payload: list[bytes]) -> None:
    """Wake a running server, ask the agent for a note, start an ingest: whatever the event
    needs."""
    event = given[b"event"]
    rung = ring(folder)
    if b"annotate" in given:
        import note_request  # type: ignore[import-not-found]  # here: few events need it

        note_request.ask(folder, event, b"".join(payload))
    if event in WAKES or (event == b"pre-push" and content(above(folder) + b"/remotes.json")):
        import launcher  # type: ignore[import-not-found]  # here: few events need it

        launcher.wake(folder, rung)


def snapshot(folder: bytes, given: dict[bytes, bytes], payload: list[bytes], began: int) -> None:
    """Have the work tree looked at around a shell command, for agents whose hook says
    `--snapshot`, and when: at a `prompt`, `before` or `after` it."""
    import shell_calls  # type: ignore[import-not-found]  # here: few events need it

    shell_calls.start(folder, given, b"".join(payload), began)


def arguments(argv: list[bytes]) -> dict[bytes, bytes]:
    """Return the options by name; the first bare word is the event, the words after it are the
    arguments git gave its hook."""
    given = {b"agent": b"", b"event": b"", b"args": b""}
    words = iter(argv)
    for word in words:
        if word in (b"--agent", b"--sha", b"--chain", b"--snapshot", b"--ask"):
            given[word[2:]] = next(words, b"")
        elif word in FLAGS:
            given[word[2:]] = b"true"
        elif not given[b"event"]:
            given[b"event"] = word
        elif not given[b"args"]:
            given[b"args"] = quoted(without_password(word))
        elif given[b"event"] != b"pre-push":  # there the remote's address comes after its name
            given[b"args"] += b"," + quoted(word)
    return given


def without_password(word: bytes) -> bytes:
    """Return what git gave its hook; of an address that was pushed to without the name and password
    in it."""
    scheme, found, rest = word.partition(b"://")
    host, _, path = rest.partition(b"/")
    if not found or b"@" not in host:
        return word
    return scheme + b"://" + host.rpartition(b"@")[2] + b"/" + path


def stdin(longest: float) -> tuple[list[bytes], bool]:
    """Return what arrived on stdin within so many seconds, on one line, and whether that is all of
    it.

    A thread reads it, because a read cannot be cancelled if the other end neither writes nor
    closes. It is kept in pieces, because copying a large one takes time.
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
    """Return whether all of stdin was read; False after SILENCE, or after so many seconds."""
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
    """Append a line with one write, so that no other hook's line comes between."""
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
    """Return the header of a line as JSON: who reports what, when and where."""
    environ = posix.environ
    env = [b'"%s":%s' % (name, quoted(environ[name])) for name in TOLD if name in environ]
    now = time.time_ns() // 1_000_000
    above_us = told_chain(given[b"chain"]) if b"chain" in given else chain()
    fields = [
        b'{"v":1,"at":%d,"pid":%d,"ppid":%d' % (now, posix.getpid(), posix.getppid()),
        b'"agent":%s,"event":%s' % (quoted(given[b"agent"]), quoted(given[b"event"])),
        b'"cwd":%s,"env":{%s}' % (quoted(shown(cwd())), b",".join(env)),
        b'"chain":[%s]' % above_us,
    ]
    if given[b"agent"] == b"git":
        sha = given.get(b"sha") or head()
        fields.append(b'"sha":%s,"args":[%s]' % (quoted(sha), given[b"args"]))
    for name in (b"rebasing", b"incomplete"):
        if name in given:
            fields.append(b'"%s":true' % name)
    for name in (b"memory", b"answer"):
        if name in given:
            fields.append(b'"%s":%s' % (name, given[name]))
    return b",".join(fields) + b"}"


def quoted(raw: bytes) -> bytes:
    """Return bytes as a JSON string."""
    text = raw.decode("utf-8", "replace")
    safe = [c if c >= " " and c not in '"\\' else f"\\u{ord(c):04x}" for c in text]
    return b'"%s"' % "".join(safe).encode()


def shown(path: bytes) -> bytes:
    """Return a path with each byte that is not UTF-8 as U+FFFD and two hex digits, so that the
    bytes can be restored."""
    text = path.decode("utf-8", "surrogateescape")
    odd = [f"\ufffd{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else c for c in text]
    return "".join(odd).encode()


def cwd() -> bytes:
    try:
        return posix.getcwdb()
    except OSError:
        return b""  # removed under our feet


def chain() -> bytes:
    """Return our ancestor processes, nearest first, if the system shows them."""
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
    """Return the same from what a shell saw before it started us in the background; missing start
    times are read now."""
    found = []
    for word in words.split():
        parts = word.split(b":", 2)
        if len(parts) < 3 or not parts[0].isdigit() or not parts[1].isdigit():
            continue
        pid, start, name = parts
        if start == b"0":
            start = started(pid)
        found.append(b"[%s,%s,%s]" % (pid, start, quoted(name)))
    return b",".join(found)


def started(pid: bytes) -> bytes:
    fields = content(b"/proc/%s/stat" % pid).rpartition(b")")[2].split()
    return fields[19] if len(fields) >= 20 else b"0"


def head() -> bytes:
    """Return the commit HEAD is at, from git's own files; nothing if it has none."""
    git = posix.environ.get(b"GIT_DIR", b".git")
    pointer = content(git)  # a work tree beside the main one has a file here
    if pointer.startswith(b"gitdir:"):
        git = pointer[7:].strip()
    name = content(git + b"/HEAD").strip()
    if not name.startswith(b"ref: "):
        return name
    return reference(git, name[5:])


def reference(git: bytes, name: bytes) -> bytes:
    """Return the commit that a ref of this git folder names; nothing if there is none."""
    common = content(git + b"/commondir").strip()
    if common[:1] not in (b"", b"/"):
        common = git + b"/" + common
    shared = common or git
    loose = content(git + b"/" + name) or content(shared + b"/" + name)
    if loose:
        return loose.strip()
    before, found, _ = content(shared + b"/packed-refs").partition(b" " + name + b"\n")
    return before.rpartition(b"\n")[2] if found else b""


# -- what is not wanted --------------------------------------------------------------------------


def is_unwanted(folder: bytes, agent: bytes, payload: list[bytes]) -> bool:
    """Return whether recording is paused, or this project or agent is excluded: then nothing is
    written anywhere."""
    excluded = content(folder + b"/excluded")
    paused = folder + b"/paused"
    names = listed(paused)
    if not excluded and not names:
        return False
    import exclusions  # type: ignore[import-not-found]  # here: most people have none

    event = exclusions.Announcement(agent, b"".join(payload))
    pauses = [content(paused + b"/" + name) for name in names]
    unwanted: bool = exclusions.is_unwanted(event, excluded, pauses)
    return unwanted


def emptied(payload: bytes, name: bytes) -> bytes:
    """Return a payload with one of its strings emptied; if that string never ends, everything after
    it is dropped."""
    before, key, rest = payload.partition(b'"%s"' % name)
    start = rest.lstrip(b" :\t")
    if not key or start[:1] != b'"':
        return payload
    end = string_end(start)
    after = start[end + 1 :] if end >= 0 else b"}"
    return before + key + b':""' + after


def string_end(text: bytes) -> int:
    """Return where the string ends that a text begins with, or -1."""
    end = text.find(b'"', 1)
    while end >= 0:
        back = end
        while text[back - 1] == 92:  # a backslash; each is looked at once
            back -= 1
        if (end - back) % 2 == 0:
            break
        end = text.find(b'"', end + 1)
    return end


# -- <private> -----------------------------------------------------------------------------------


def without_private(parts: list[bytes]) -> tuple[list[bytes], bool]:
    """Return a payload without the text between private tags, and whether there was any.

    A payload that is not JSON is one text. One that is too large to search counts as private; only
    whose event it was is kept.
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


def outline(told: bytes) -> bytes:
    """Return only whose event it was, without what was said. `told` may be cut anywhere."""
    found = []
    for name in OUTLINE:
        rest = told.partition(b'"%s"' % name)[2][:PATH].lstrip(b" :\t")
        value, closing, _ = rest[1:].partition(b'"')
        if rest[:1] == b'"' and value and closing and value[-1:] != b"\\":
            found.append(b'"%s":"%s"' % (name, value))
    return b"{%s}" % b",".join(found)


# -- what follows from an event ------------------------------------------------------------------


def export_session(payload: bytes) -> None:
    """Set variables, so that commands the agent runs from now on know their session."""
    path = posix.environ.get(b"CLAUDE_ENV_FILE")
    ident = field(payload, b"session_id") or posix.environ.get(b"CLAUDE_CODE_SESSION_ID", b"")
    if path and ident.replace(b"-", b"").replace(b"_", b"").isalnum():
        fd = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o600)
        # the second for beads, which records who closed an issue
        lines = b"\nexport WHYFOR_SESSION='claude:%s'\nexport CLAUDE_SESSION_ID='%s'\n"
        posix.write(fd, lines % (ident, ident))


def ring(folder: bytes) -> bool:
    """Return whether a running server was woken: this pipe has a reader only while `whyfor serve`
    runs."""
    try:
        fd = posix.open(folder + b"/bell", posix.O_WRONLY | posix.O_NONBLOCK)
        return posix.write(fd, b".") == 1
    except OSError:
        return False


# -- small things --------------------------------------------------------------------------------


def field(payload: bytes, name: bytes) -> bytes:
    """Return a string by its key. Inside a string the key's quotes would be escaped, so text is
    never mistaken for it."""
    rest = payload.partition(b'"%s"' % name)[2][:300].lstrip(b" :\t")
    return rest[1:].partition(b'"')[0] if rest[:1] == b'"' else b""


def content(path: bytes) -> bytes:
    """Return a small file's bytes; empty if it cannot be read."""
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


def listed(folder: bytes) -> list[bytes]:
    """Return the names in a directory; empty if it cannot be read."""
    try:
        return posix.listdir(folder)
    except OSError:
        return []


def above(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]
