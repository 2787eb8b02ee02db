"""What redaction costs: against others on the same text, as sessions grow, and after one more
line."""

from __future__ import annotations

import shlex
import shutil
import string
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from measure import Cost, Env, clean_env, middle, run, typical
from raw import transcripts
from report import Cell, Check, Report, Table, ratio
from scanners import Scanner
from strings import texts

_SAMPLE = 8_000_000  # bytes of a session the others are given, or as much as they get done
_TIMES = 5
_LARGE = 500_000  # bytes of a real session that counts
_SPACING = 50  # records from one planted secret to the next
_LETTERS = string.ascii_letters + string.digits
_FASTEST = 10.0  # MB per CPU second that are asked for


@dataclass(frozen=True)
class Session:
    """One transcript to redact."""

    name: str
    path: Path

    @property
    def mb(self) -> float:
        return self.path.stat().st_size / 1e6


def speed(report: Report, scanners: Sequence[Scanner], session: Session, seconds: float) -> None:
    """All on the text of one session, in memory, without their start."""
    sample = ["\n".join(strings) for strings in texts(session.path, _SAMPLE)]
    scans = [(scanner, scanner.scan(sample, seconds)) for scanner in scanners]
    ours = scans[0][1].speed
    table: list[list[Cell]] = [
        [scanner.name, scan.size / 1e6, scan.cpu, scan.speed, ours / scan.speed, scan.peak_mb]
        for scanner, scan in scans
    ]
    note = (
        f"The strings of a generated session, record by record; who was not done after {seconds:g} "
        "s was stopped."
    )
    columns = ["", "MB", "CPU s", "MB per CPU s", "ours is × as fast", "peak MB"]
    report.add(
        Table("Redaction: speed on the same text", columns, table, note),
        Check("redaction: MB per CPU s, text", ours, _FASTEST, "", floor=True),
    )


def whole_sessions(
    report: Report, program: Path, sessions: Sequence[Session], real: Session | None, scratch: Path
) -> None:
    """Whole commands: start, reading, decoding, finding, writing."""
    table: list[list[Cell]] = []
    rates: dict[str, float] = {}
    for session in [*sessions, *([real] if real else [])]:
        cost = redact(program, session, scratch)
        rates[session.name] = session.mb / cost.cpu
        table.append(
            [session.name, session.mb, cost.cpu, cost.wall, rates[session.name], cost.peak_mb]
        )
    columns = ["", "MB", "CPU s", "wall s", "MB per CPU s", "peak MB"]
    first, last = sessions[0].name, sessions[-1].name
    fast = [
        Check(f"redaction: MB per CPU s, {one.name}", rates[one.name], _FASTEST, "", floor=True)
        for one in (sessions[-1], real)
        if one
    ]
    report.add(
        Table(
            "Redaction: whole sessions", columns, table, "whyfor redact FILE, the whole command."
        ),
        *fast,
        Check(f"redaction: CPU per MB, {last} / {first}", ratio(rates[first], rates[last]), 1.2),
    )


def together(home: Path, scratch: Path) -> Session:
    """The larger sessions of a real home, one after the other."""
    target = scratch / "real.jsonl"
    with target.open("wb") as out:
        for path in transcripts(home):
            if path.suffix == ".jsonl" and path.stat().st_size > _LARGE:
                out.write(path.read_bytes())
    return Session("real sessions", target)


def appending(report: Report, program: Path, sessions: Sequence[Session], scratch: Path) -> None:
    """A session that goes on: what was redacted once is not redone."""
    plain = [_again(program, session, scratch, plain_record) for session in sessions]
    secret = [_again(program, session, scratch, planted_record) for session in sessions]
    inside = [_inside(session, scratch) for session in sessions]
    table: list[list[Cell]] = [
        [
            session.name,
            session.mb,
            one.cpu * 1e3,
            other.cpu * 1e3,
            max(one.peak_mb, other.peak_mb),
            *times,
        ]
        for session, one, other, times in zip(sessions, plain, secret, inside, strict=True)
    ]
    columns = [
        "",
        "MB before it",
        "command, plain, ms",
        "with a secret",
        "peak MB",
        "process, plain, ms",
        "with a secret",
    ]
    note = f"""CPU. Command: whyfor redact FILE --output OUT again after FILE got a line more, median of {_TIMES}.
Process: one that goes on. With a secret: one that is new, whose copies are looked for in all that was there before.
Before that, one record in {_SPACING} held a secret of its own."""
    sizes = f"{sessions[-1].name} / {sessions[0].name}"
    report.add(
        Table("Redaction: one more line", columns, table, note),
        Check(f"redaction: one more line, {sizes}", ratio(plain[-1].cpu, plain[0].cpu), 1.2),
        Check(
            f"redaction: one more line with a new secret, {sizes}",
            ratio(secret[-1].cpu, secret[0].cpu),
            1.2,
        ),
    )


def _again(
    program: Path, session: Session, scratch: Path, record: Callable[[Random], bytes]
) -> Cost:
    source, target, rng = scratch / "growing.jsonl", scratch / "redacted.jsonl", Random("appended")
    shutil.copy(session.path, source)
    target.unlink(missing_ok=True)
    command = [str(program), "redact", str(source), "--output", str(target)]
    run(command, _env(scratch))
    costs = []
    for _ in range(_TIMES):
        with source.open("ab") as file:
            file.write(record(rng))
        costs.append(run(command, _env(scratch)))
    return middle(costs)


def _inside(session: Session, scratch: Path) -> list[float]:
    script = str(Path(__file__).with_name("appending.py"))
    told = run([sys.executable, script, str(session.path)], clean_env(scratch, scratch)).output
    return [float(ms) for ms in told.split()]


def redact(program: Path, session: Session, scratch: Path) -> Cost:
    """Into nothing: kept in memory here, the output would weigh on what is measured next."""
    command = shlex.join([str(program), "redact", str(session.path)])
    return typical(1, lambda: run(["/bin/sh", "-c", f"{command} > /dev/null"], _env(scratch)))


def _env(scratch: Path) -> Env:
    return clean_env(scratch, scratch) | {"WHYFOR_HOME": str(scratch / "redaction-store")}


def session(name: str, home: Path) -> Session:
    """The session of a generated home, without its subagents, and with secrets in it: they take
    the most time."""
    path = max((home / ".claude").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    target, rng = home / "session.jsonl", Random("planted")
    with path.open("rb") as lines, target.open("wb") as out:
        for number, line in enumerate(lines):
            out.write(line)
            if number % _SPACING == 0:
                out.write(planted_record(rng))
    return Session(name, target)


def planted_record(rng: Random) -> bytes:
    """A tool's output that shows a secret no other record has."""
    name, value = (
        rng.choice(["API_TOKEN", "DB_PASSWORD", "client_secret"]),
        "".join(rng.choices(_LETTERS, k=40)),
    )
    return _record(rng, f"PORT=8080\n{name}={value}\nDEBUG=0\n")


def plain_record(rng: Random) -> bytes:
    return _record(rng, f"PORT=8080\nthe token of {rng.randint(1, 9999)} is set\nDEBUG=0\n")


def _record(rng: Random, output: str) -> bytes:
    block = {
        "tool_use_id": f"toolu_01{rng.getrandbits(88):022x}",
        "type": "tool_result",
        "content": output,
    }
    return (
        msgspec.json.encode({"type": "user", "message": {"role": "user", "content": [block]}})
        + b"\n"
    )
