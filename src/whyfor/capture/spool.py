"""The spool: the lines that hooks wrote, and what each of them means."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from whyfor.agents import AGENTS, RECORDED, decode
from whyfor.model.approvals import ANSWERED, DECIDED, ToldDecision
from whyfor.model.attention import ATTENTION, AttentionMark, mark_data
from whyfor.model.gaps import Gap
from whyfor.model.paths import to_text
from whyfor.model.printed import printed, reported
from whyfor.model.shell_edits import SHELL_EDITS, ShellEdits
from whyfor.model.signals import Process, Signal
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.model.telemetry import TELEMETRY, TelemetryRequest
from whyfor.model.times import DAY

OWN = "whyfor"  # whose lines are of no agent's hook
HOOK = "hook"  # whose files these are, where transcripts have an agent
KEPT = 2 * DAY  # ms a file stays after its last line, though all of it is stored
_ENDING = ".spool"
_SHELLS = frozenset("sh bash dash zsh fish ksh mksh ash busybox tcsh csh nu pwsh cmd".split())
_FACTS = (
    "reason source trigger tool_name tool_use_id agent_id agent_type notification_type prompt_id "
    "turn_id "
    "transcript_path agent_transcript_path error"
).split()
_MARKED = f'"event":"{ATTENTION}"'.encode()
_MAX_FACT = 500
_MAX_REFS = 100  # of one push
_MAX_ASKED = 8000  # characters of a command that are shown to the person who may allow it
# prints commits that may be somebody else's
_REPLAYS = re.compile(r"\b(rebase|cherry-pick|am|pull)\b")
# the session around these processes at that time
Around = Callable[[list[Process], int], tuple[str, str] | None]


class Envelope(msgspec.Struct, frozen=True):
    """A line of the spool: its header, then the payload that the hook received."""

    v: int
    at: int
    agent: str
    event: str
    cwd: str = ""
    env: dict[str, str] = {}
    chain: list[Process] = []
    sha: str = ""
    args: list[str] = []
    rebasing: bool = False
    # the hook's stdin was not closed, or was too large: the payload only says whose event it was
    incomplete: bool = False
    # what the hook told the session of earlier ones
    memory: dict[str, Any] = {}
    # what a rule or a person in the browser answered, as the hook or the server tells
    answer: dict[str, Any] = {}
    # what the monitor told a person, or a person muted
    attention: dict[str, Any] = {}
    # a request to a model, as an agent's telemetry tells
    telemetry: dict[str, Any] = {}
    payload: bytes = b""


_header = msgspec.json.Decoder(Envelope)


def files(home: Path) -> list[Path]:
    """Return the files of the spool, oldest first; their names are dates."""
    try:
        return sorted(path for path in (home / "spool").iterdir() if path.name.endswith(_ENDING))
    except (FileNotFoundError, NotADirectoryError):
        return []


def source(path: Path) -> Source:
    return Source(id=0, agent=HOOK, path=to_text(path), session_id="", framing="lines", state={})


def envelopes(
    data: bytes, start: int, gaps: Sequence[Gap] = ()
) -> Iterator[Envelope | UnparsedRecord]:
    for offset, line in decode.split_lines(data, start, gaps):
        header, _, payload = line.partition(b"\t")
        try:
            found = _header.decode(header)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            yield UnparsedRecord(offset, len(line), "not an envelope")
            continue
        if found.v != 1:
            yield UnparsedRecord(offset, len(line), "envelope of a newer version")
            continue
        yield msgspec.structs.replace(found, payload=payload)


def blank(path: Path, position: int, sessions: Container[tuple[str, str]], around: Around) -> None:
    """Blank the lines of forgotten sessions."""
    erase(path, position, lambda line: _is_of(line, sessions, around))


def erase(path: Path, position: int, goes: Callable[[bytes], bool]) -> None:
    """Overwrite lines with blanks, so that no other line moves."""
    with path.open("r+b") as file:
        offset = file.seek(position)
        for line in file.read().split(b"\n")[:-1]:
            if line and goes(line):
                file.seek(offset)
                file.write(b" " * len(line))
            offset += len(line) + 1


def _is_of(line: bytes, sessions: Container[tuple[str, str]], around: Around) -> bool:
    for found in envelopes(line, 0):
        if not isinstance(found, UnparsedRecord):
            said = signal(found, around)
            return (said.session_agent, said.session_id) in sessions
    return False


def signal(envelope: Envelope, around: Around) -> Signal:
    """Return the signal of an envelope. `around` finds the session of a process from earlier
    envelopes."""
    payload = _payload(envelope)
    if probe := envelope.env.get("WHYFOR_PROBE") or payload.get("probe"):
        facts = {"probe": str(probe), "event": envelope.event}
        return Signal(envelope.at, envelope.agent, "probe", envelope.cwd or None, data=facts)
    if envelope.agent == "git":
        return _of_git(envelope, around)
    if envelope.event == ATTENTION:
        return _of_monitor(envelope, payload)
    if envelope.event == TELEMETRY:
        return _of_telemetry(envelope, payload)
    if envelope.event == SHELL_EDITS:
        return _of_shell(envelope, payload)
    return _of_agent(envelope, payload)


def _of_shell(envelope: Envelope, payload: dict[str, Any]) -> Signal:
    """What a command changed, as the process says that our hook started."""
    ident = payload.get("session_id")
    known = isinstance(ident, str)
    return Signal(
        at=envelope.at,
        agent=envelope.agent,
        event=envelope.event,
        cwd=envelope.cwd or None,
        session_agent=envelope.agent if known else None,
        session_id=ident if known else None,
        how="payload" if known else None,
        data={"shell": payload},
    )


def _payload(envelope: Envelope) -> dict[str, Any]:
    found = decode.decode_line(envelope.payload, 0)
    return found[0] if isinstance(found, list) and found else {}


# -- agents' hooks -------------------------------------------------------------------------------


def _of_agent(envelope: Envelope, payload: dict[str, Any]) -> Signal:
    data: dict[str, Any] = {}
    for name in _FACTS:
        value = payload.get(name)
        if isinstance(value, str):
            data[name] = value[:_MAX_FACT]
    process = _agent_process(envelope)
    if process:
        data["process"] = [process.pid, process.start]
    made = _made(payload)
    if made:
        data["made"] = made
    asked = _asked(envelope.agent, payload)
    if asked:
        data["asked"] = asked
    if envelope.memory:
        data["memory"] = envelope.memory
    if envelope.answer:
        data["answer"] = envelope.answer
    ident, how = _own_session(envelope, payload)
    return Signal(
        at=envelope.at,
        agent=envelope.agent,
        event=envelope.event,
        cwd=envelope.cwd or None,
        session_agent=envelope.agent if ident else None,
        session_id=ident,
        how=how,
        chain=envelope.chain,
        data=data,
    )


def _of_monitor(envelope: Envelope, payload: dict[str, Any]) -> Signal:
    """A line of our own: of no agent, so that nobody takes it for a hook that works."""
    agent, ident = payload.get("session_agent"), payload.get("session_id")
    known = isinstance(agent, str) and isinstance(ident, str)
    return Signal(
        at=envelope.at,
        agent=OWN,
        event=ATTENTION,
        session_agent=agent if known else None,
        session_id=ident if known else None,
        data={"attention": envelope.attention},
    )


def _agent_process(envelope: Envelope) -> Process | None:
    """Return the nearest process above the hook that is not a shell."""
    for process in envelope.chain:
        if process.start and process.name.lstrip("-") not in _SHELLS:
            return process
    return None


def _made(payload: dict[str, Any]) -> list[str]:
    """Return the abbreviated hashes of the commits that a shell command just made, as the agent
    reports or git printed them.

    Some agents turn git's own hooks off for their commands; then only this tells.
    """
    answer, given = payload.get("tool_response"), payload.get("tool_input")
    command = given.get("command") if isinstance(given, dict) else None
    if not isinstance(command, str) or "git" not in command or _REPLAYS.search(command):
        return []
    found: list[str] = []
    texts = [answer]
    if isinstance(answer, dict):
        texts = list(answer.values())
        told = reported(answer.get("gitOperation"))
        if told:
            found.append(told)
    for text in texts:
        if isinstance(text, str):
            found += [sha for sha, _ in printed(text)]
    return list(dict.fromkeys(sha[:7] for sha in found))


def _asked(agent: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Return what a person is asked to allow, if only the hook says so."""
    if agent not in AGENTS:
        return {}
    asked: dict[str, Any] = {}
    cut = False
    for name, value in AGENTS[agent].requested(payload).items():
        if isinstance(value, str) and value:
            asked[name] = value[:_MAX_ASKED]
            cut = cut or len(value) > _MAX_ASKED
    if cut:
        asked["cut"] = True
    return asked


def _own_session(envelope: Envelope, payload: dict[str, Any]) -> tuple[str | None, str | None]:
    agent = AGENTS.get(envelope.agent)
    own = envelope.event in (ANSWERED, DECIDED) or agent is None or agent.owns_hook(payload)
    if not own:
        return None, None
    ident = payload.get("session_id") or payload.get("sessionId")
    if isinstance(ident, str):
        return ident, "payload"
    ident = dict(reversed(named_sessions(envelope.env))).get(envelope.agent)
    return ident, "env" if ident else None


def _of_telemetry(envelope: Envelope, payload: dict[str, Any]) -> Signal:
    agent, ident = payload.get("session_agent"), payload.get("session_id")
    is_known = isinstance(agent, str) and isinstance(ident, str)
    return Signal(
        at=envelope.at,
        agent=OWN,
        event=TELEMETRY,
        cwd=None,
        session_agent=agent if is_known else None,
        session_id=ident if is_known else None,
        how="payload" if is_known else None,
        data={"request": envelope.telemetry},
    )


# -- git's hooks ---------------------------------------------------------------------------------


def _of_git(envelope: Envelope, around: Around) -> Signal:
    session, how = _routed(envelope, around)
    return Signal(
        at=envelope.at,
        agent="git",
        event=envelope.event,
        cwd=envelope.cwd or None,
        session_agent=session[0] if session else None,
        session_id=session[1] if session else None,
        how=how,
        repository=_repository(envelope),
        sha=envelope.sha if _is_sha(envelope.sha) else None,
        chain=envelope.chain,
        data=_git_facts(envelope),
    )


def _repository(envelope: Envelope) -> str | None:
    tree = envelope.env.get("GIT_WORK_TREE")
    if not tree:
        return envelope.cwd or None
    return os.path.normpath(os.path.join(envelope.cwd, tree))  # noqa: PTH118 - Path keeps ".."


def _routed(envelope: Envelope, around: Around) -> tuple[tuple[str, str] | None, str | None]:
    """Return whose commit it is and how that is known: from the environment, unless the processes
    show that it was only inherited."""
    told = named_sessions(envelope.env)
    nearest = around(envelope.chain, envelope.at)
    if nearest is None:
        return (told[0], "env") if told else (None, None)
    # An agent whose hooks were not approved is still recognised by its program's name.
    names = (process.name for process in envelope.chain)
    inner = next((name for name in names if _session_variables(name)), None)
    own = [session for session in told if session[0] == inner]
    if own and inner != nearest[0]:
        return own[0], "env"
    if nearest in told:
        return nearest, "env"
    if not told or told[0][0] != nearest[0]:
        return nearest, "ancestry"
    return told[0], "env"


def named_sessions(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the sessions that the environment names, the most reliable first."""
    agent, _, ident = env.get("WHYFOR_SESSION", "").partition(":")
    told = [(agent, ident)] if agent and ident else []
    found: list[tuple[str, str]] = []
    for name in AGENTS:
        found += [(name, env[key]) for key in _session_variables(name) if env.get(key)]
    # an agent inside a recorded terminal knows better
    return [*found, *told] if agent in RECORDED else [*told, *found]


def _session_variables(agent: str) -> tuple[str, ...]:
    return AGENTS[agent].facts.session_variables if agent in AGENTS else ()


def _git_facts(envelope: Envelope) -> dict[str, Any]:
    data: dict[str, Any] = {"rebasing": True} if envelope.rebasing else {}
    action = envelope.env.get("GIT_REFLOG_ACTION")
    if action:
        data["action"] = action[:_MAX_FACT]
    first = envelope.args[0] if envelope.args else None
    if envelope.event == "post-rewrite":
        words = envelope.payload.decode("ascii", "replace").split()
        shas = [word for word in words if _is_sha(word)]
        data["pairs"] = [list(pair) for pair in zip(shas[::2], shas[1::2], strict=False)]
        data["cause"] = first
    elif envelope.event == "post-checkout":
        data["moved"] = envelope.args[:3]
    elif envelope.event == "pre-push":
        data["remote"] = first
        data["refs"] = _pushed_refs(envelope.payload)
        if envelope.chain:
            data["pushing"] = [envelope.chain[0].pid, envelope.chain[0].start]
    return data


def _pushed_refs(payload: bytes) -> list[list[str]]:
    """Return what is about to be pushed: the local name, its commit, the name on the remote. The
    commit is all zeros where something is deleted there."""
    words = payload.decode("utf-8", "replace").split()
    found = []
    for at in range(0, len(words) - 3, 4):
        local, sha, remote, _ = words[at : at + 4]
        if _is_sha(sha):
            found.append([local[:_MAX_FACT], sha, remote[:_MAX_FACT]])
    return found[:_MAX_REFS]


def _is_sha(word: str) -> bool:
    return len(word) in (40, 64) and not word.strip("0123456789abcdef")


# -- our own lines -------------------------------------------------------------------------------


def append_answer(home: Path, agent: str, session_id: str, answer: dict[str, Any]) -> None:
    """Append what was answered for a person, and wait until it is on disk. Raises OSError."""
    now = int(time.time() * 1000)
    _append(home, [_own_line(agent, session_id, now, ANSWERED, answer)])


def append_decisions(home: Path, told: Sequence[ToldDecision]) -> None:
    """Append what telemetry tells of decisions, and wait until it is on disk: the list of approvals
    is made of it as of what hooks tell. The same told twice counts once. Raises OSError."""
    lines = []
    for each in told:
        answer = {
            "answer": "allow" if each.allowed else "deny",
            "by": each.by,
            "source": each.source[:_MAX_FACT],
            "call": each.call[:_MAX_FACT],
            "tool": each.tool[:_MAX_FACT],
            "action": each.action[:_MAX_ASKED],
            "reason": each.reason[:_MAX_FACT],
        }
        given = {name: value for name, value in answer.items() if value}
        lines.append(_own_line(each.agent, each.session_id, each.at, DECIDED, given))
    if lines:
        _append(home, lines)


def _own_line(agent: str, session_id: str, at: int, event: str, answer: dict[str, Any]) -> bytes:
    header = {"v": 1, "at": at, "agent": agent, "event": event, "answer": answer}
    payload = msgspec.json.encode({"session_id": session_id})
    return b"\n" + msgspec.json.encode(header) + b"\t" + payload + b"\n"


def append_mark(home: Path, session: tuple[str, str] | None, mark: AttentionMark, at: int) -> None:
    """Append what the monitor told or a person muted, at a time in ms. Raises OSError."""
    header = {"v": 1, "at": at, "agent": OWN, "event": ATTENTION, "attention": mark_data(mark)}
    whose = {"session_agent": session[0], "session_id": session[1]} if session else {}
    line = b"\n" + msgspec.json.encode(header) + b"\t" + msgspec.json.encode(whose) + b"\n"
    _append(home, [line])


def spooled_marks(home: Path) -> list[Signal]:
    """Return what the monitor told or a person muted lately, as it stands in the spool: also what
    no ingest has read yet."""
    found = []
    for path in files(home)[-2:]:
        try:
            data = path.read_bytes()
        except OSError:
            continue
        told = b"\n".join(line for line in data.splitlines() if _MARKED in line)
        for envelope in envelopes(told + b"\n", 0):
            if isinstance(envelope, Envelope) and envelope.event == ATTENTION:
                found.append(_of_monitor(envelope, _payload(envelope)))
    return found


def append_requests(home: Path, told: Sequence[TelemetryRequest]) -> None:
    """Append what telemetry tells of requests to models, and wait until it is on disk. Raises
    OSError."""
    lines = []
    for each in told:
        header = {"v": 1, "at": each.at, "agent": OWN, "event": TELEMETRY, "telemetry": each}
        whose = {"session_agent": each.agent, "session_id": each.session_id}
        line = msgspec.json.encode(header) + b"\t" + msgspec.json.encode(whose)
        lines.append(b"\n" + line + b"\n")
    if lines:
        _append(home, lines)


def append_shell_edits(home: Path, agent: str, top: str, told: ShellEdits) -> None:
    """Append what a command changed, and wait until it is on disk. Raises OSError."""
    at = int(time.time() * 1000)
    header = {"v": 1, "at": at, "agent": agent, "event": SHELL_EDITS, "cwd": top}
    _append(home, [b"\n" + msgspec.json.encode(header) + b"\t" + msgspec.json.encode(told) + b"\n"])


def _append(home: Path, lines: list[bytes]) -> None:
    folder = home / "spool"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / time.strftime(f"%Y-%m-%d{_ENDING}", time.gmtime())
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        left = memoryview(b"".join(lines))
        while left:
            left = left[os.write(fd, left) :]
        os.fsync(fd)
    finally:
        os.close(fd)
