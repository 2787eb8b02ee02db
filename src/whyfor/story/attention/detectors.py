"""Detectors: each looks at one session's work at one moment and says what a person should know.

Thresholds are measured on real sessions: see docs/attention.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from whyfor.model.attention import Concern, Level
from whyfor.model.cost import dollars
from whyfor.model.text import plural
from whyfor.story.attention.texts import Trouble
from whyfor.story.attention.work import WALL, Row, Work

QUIET = 180_000  # ms in which a model answers, all but a few of ten thousand times
LONG = 600_000  # ms
REFUSED = 3
REPEATS = 3
FAILING = 5
SPINNING = 4
UNDONE = 2
RETRIES = 5
CONTEXT = 0.8
WAITED = 300_000  # ms a person may take to answer before somebody should be told
PRESENT = 120_000  # ms after a prompt in which the person who wrote it still looks
SPEND = 5.0  # dollars of a turn, and at least
TIMES = 10  # times the project's median turn
_DUE = frozenset(("user.prompt", "tool.result", "turn.started", "compaction"))
_FAST = frozenset(("read", "search", "edit", "write", "patch"))  # they run no program
_WAITS = frozenset(("question", "plan", "subagent"))


class Scene(msgspec.Struct, frozen=True):
    """What is known beside a session's own events."""

    now: int
    alive: bool | None = True  # its process; None: nobody can tell
    pid: int | None = None
    waits: bool = False  # for a person's answer, as its status says
    asked_at: int | None = None  # when it asked to be allowed something
    asks_for: str = ""  # what that is
    typical: float | None = None  # dollars: the median turn of its project
    name: str = ""  # how its commands name it: agent:id


Detector = Callable[[Work, Scene], Concern | None]


def find_all(work: Work, scene: Scene) -> Iterator[Concern]:
    """Yield what holds now, by all detectors."""
    for detect in DETECTORS.values():
        found = detect(work, scene)
        if found is not None:
            yield found


# -- what takes too long -------------------------------------------------------------------------


def quiet(work: Work, scene: Scene) -> Concern | None:
    """The model owes an answer, nothing runs, and nothing was written for three minutes."""
    due = work.open and not work.calls and work.last_kind in _DUE
    if not due or scene.waits or scene.alive is not True or work.trouble:
        return None
    silence = scene.now - work.last_at
    if silence < QUIET:
        return None
    process = f"process {scene.pid} alive, " if scene.pid else ""
    return Concern(
        cause="quiet",
        key=_key(work),
        at=work.last_at,
        fact=f"The turn is open, but nothing was written for {_minutes(silence)} "
        "and no command is running.",
        evidence=f"{process}transcript silent, medium",
        step="Open its terminal; press Escape there and ask it to go on.",
        confidence="medium",
        seq=work.last_seq,
    )


def long_command(work: Work, scene: Scene) -> Concern | None:
    """A call runs for more than ten minutes, and its process is there."""
    if scene.waits or scene.alive is not True:
        return None
    for call in work.calls.values():
        took = scene.now - max(call.at, work.last_at if call.kind == "subagent" else 0)
        if took >= LONG and call.kind not in _WAITS:
            return Concern(
                cause="long",
                key=call.id,
                at=call.at,
                fact=f"{call.shown} has no result after {_minutes(took)}."
                + (" It takes seconds: it waits for you, or hangs." if call.kind in _FAST else ""),
                evidence="call without a result, high",
                step="Look at its terminal: it runs, or waits for input or permission.",
                seq=call.seq,
            )
    return None


# -- what does not get on ------------------------------------------------------------------------


def wall(work: Work, _scene: Scene) -> Concern | None:
    """The same call was refused or failed three times in a row, or three calls were refused and
    nobody is there who could allow them."""
    row = work.wall
    if row is None or row.count < WALL:
        row = work.refused
        if row is None or row.count < REFUSED:
            return None
    refused = row.refused
    what = "refused" if refused else "failed"
    how = "and nobody is asked" if refused else "in a row"
    subject = row.first.shown if row is work.wall else plural(row.count, "call")
    times = f" {row.count} times" if row is work.wall else ""
    return Concern(
        cause="wall",
        key=_key(work) if refused else f"{_key(work)} failed",
        at=row.at,
        fact=f"{subject}: {what}{times} {how}.",
        evidence=f"tool results, high · {row.text}",
        step="Allow it in the agent's settings, or tell the agent another way."
        if refused
        else "Tell the agent what is wrong; it does not find out by itself.",
        level=None if refused else "look",
        seq=row.seq,
    )


def repeats(work: Work, _scene: Scene) -> Concern | None:
    """The same command failed with the same words three times in one turn."""
    rows = [row for row in work.repeats.values() if row.first.same not in work.walled]
    row = _most(rows, REPEATS)
    if row is None or not work.open:
        return None
    return Concern(
        cause="repeats",
        key=_key(work),
        at=row.at,
        fact=f"{row.first.shown} failed {row.count} times with the same message.",
        evidence=f"tool results, high · {row.text}",
        step="Read the runs; stop it if the next attempt is the same again.",
        seq=row.seq,
    )


def failing(work: Work, _scene: Scene) -> Concern | None:
    """Five calls in a row failed; a person's no and echoes are not counted."""
    row = work.failing
    if row is None or row.count < FAILING or not work.open:
        return None
    return Concern(
        cause="failing",
        key=_key(work),
        at=row.at,
        fact=f"{row.count} calls failed in a row.",
        evidence=f"tool results, high · last: {row.text}",
        step="Read the last results; something it relies on may be missing.",
        seq=row.seq,
    )


def spinning(work: Work, _scene: Scene) -> Concern | None:
    """The same call gave the same result four times, and nothing was edited between."""
    row = _most(work.spins.values(), SPINNING)
    if row is None or not work.open:
        return None
    return Concern(
        cause="spinning",
        key=_key(work),
        at=row.at,
        fact=f"{row.first.shown} ran {row.count} times with the same result, "
        "and nothing was edited between.",
        evidence="tool calls and results, high",
        step="Stop it and say what to do with the result.",
        seq=row.seq,
    )


def undone(work: Work, _scene: Scene) -> Concern | None:
    """Edits of one file were taken back twice in one turn."""
    for path, row in work.undone.items():
        if row.count >= UNDONE and work.open:
            return Concern(
                cause="undone",
                key=_key(work),
                at=row.at,
                fact=f"Edits of {path} were taken back {row.count} times in this turn.",
                evidence="tool calls, high",
                step="Decide for it which way it should be.",
                seq=row.seq,
            )
    return None


# -- what the model's API and the network say ----------------------------------------------------


def sign_in_needed(work: Work, _scene: Scene) -> Concern | None:
    """The model's API refused the agent's key or sign-in, and the turn stopped."""
    if work.trouble is None or work.trouble.kind != "sign-in":
        return None
    return Concern(
        cause="sign-in",
        key=_key(work),
        at=work.trouble.at,
        fact="The model's API refused its sign-in, and the turn stopped.",
        evidence=f"transcript, high · {work.trouble.text}",
        level=_stopped_level(work, work.trouble),
        step="Sign in again in its terminal, then ask it to go on.",
        seq=work.trouble.seq,
    )


def limit(work: Work, scene: Scene) -> Concern | None:
    """The model's API counts too many requests, or the plan is used up, and the turn stopped."""
    if work.trouble is None or work.trouble.kind != "limit":
        return None
    until = work.trouble.until
    return Concern(
        cause="limit",
        key=_key(work),
        at=work.trouble.at,
        fact=f"Its usage limit is reached{f' until {until}' if until else ''}; the turn stopped.",
        evidence=f"transcript, high · {work.trouble.text}",
        level=_stopped_level(work, work.trouble),
        step="Continue then, or hand it to another agent.",
        seq=work.trouble.seq,
        command=f"whyfor handoff {scene.name}" if scene.name else None,
    )


def _stopped_level(work: Work, trouble: Trouble) -> Level:
    """Whoever has just written a prompt sees the error; who left it alone must be told."""
    alone = work.headless or trouble.at - work.turn_at > PRESENT
    return "act" if alone else "look"


def retrying(work: Work, _scene: Scene) -> Concern | None:
    """A request to the model failed five times, or for good."""
    trouble = work.trouble
    if trouble is not None and trouble.kind == "other":
        return Concern(
            cause="retrying",
            key=_key(work),
            at=trouble.at,
            fact="The model's API failed, and the turn stopped.",
            evidence=f"transcript, high · {trouble.text}",
            step="Ask it to go on when the API answers again.",
            seq=trouble.seq,
        )
    if work.retries < RETRIES:
        return None
    return Concern(
        cause="retrying",
        key=_key(work),
        at=work.retry_at,
        fact=f"The model's API failed {work.retries} times; the agent tries again.",
        evidence="transcript, high · retries of one request",
        step="Check the network, or wait: it goes on by itself.",
        seq=work.last_seq,
    )


def network(work: Work, _scene: Scene) -> Concern | None:
    """A command failed because a host was not reached."""
    row = work.network
    if row is None or not work.open:
        return None
    return Concern(
        cause="network",
        key=_key(work),
        at=row.at,
        fact=f"{row.first.shown} could not reach a host.",
        evidence=f"failed command, high · {row.text}",
        step="Check the network or the proxy of this machine.",
        seq=row.seq,
    )


def conflict(work: Work, _scene: Scene) -> Concern | None:
    """git stopped at a conflict that is not settled."""
    row = work.conflict
    if row is None:
        return None
    return Concern(
        cause="conflict",
        key=f"{work.child} {row.seq}".strip(),
        at=row.at,
        fact=f"{row.first.shown} stopped at a conflict" + (f" in {row.text}." if row.text else "."),
        evidence="git's output, high",
        step="See how the agent settles it before it commits.",
        seq=row.seq,
    )


# -- what it costs -------------------------------------------------------------------------------


def context(work: Work, scene: Scene) -> Concern | None:
    """More than four fifths of the model's window are used."""
    used = work.prompt
    if used is None or used.size < CONTEXT * used.window or work.child:
        return None
    return Concern(
        cause="context",
        key=f"{work.compactions}",
        at=used.at,
        fact="It will compact soon, and forget what is not written down.",
        evidence=f"{used.size // 1000}k of {used.window // 1000}k tokens, reported by the agent",
        step="Let it write down what must not be lost, or begin a new session.",
        share=used.size / used.window,
        command=f"whyfor handoff {scene.name}" if scene.name else None,
    )


def spend(work: Work, scene: Scene) -> Concern | None:
    """The turn costs more than $5 and ten times what a turn of this project usually costs."""
    if work.spent is None or work.child:
        return None
    most = max(SPEND, TIMES * (scene.typical or 0.0))
    if work.spent <= most:
        return None
    usual = f"; a turn here usually costs {dollars(scene.typical)}" if scene.typical else ""
    return Concern(
        cause="spend",
        key=_key(work),
        at=work.last_at,
        fact=f"This turn has cost {dollars(work.spent)}{usual}.",
        evidence="tokens at API price",
        step="See where it went; smaller steps cost less.",
        share=work.spent / most,
    )


# -- who waits -----------------------------------------------------------------------------------


def asks(work: Work, scene: Scene) -> Concern | None:
    """A question waits for an answer; after five minutes somebody should be told."""
    if not work.questions or work.child or scene.alive is False:
        return None
    ident, asked = min(work.questions.items(), key=lambda item: item[1].at)
    waited = scene.now - asked.at
    return Concern(
        cause="asks",
        key=ident,
        at=asked.at,
        fact=asked.text or "It asks a question and waits for your answer.",
        evidence="question without an answer, high",
        step="Answer in its terminal.",
        level="act" if waited >= WAITED else "look",
        seq=asked.seq,
    )


def backlog(work: Work, scene: Scene) -> Concern | None:
    """A request to be allowed something has waited for five minutes."""
    if scene.asked_at is None or work.child:
        return None
    waited = scene.now - scene.asked_at
    if waited < WAITED:
        return None
    what = f": {scene.asks_for}" if scene.asks_for else ""
    return Concern(
        cause="backlog",
        key=f"{scene.asked_at}",
        at=scene.asked_at,
        fact=f"It has waited {_minutes(waited)} to be allowed something{what}.",
        evidence="hook or transcript, high",
        step="Answer in its terminal, or on the page Approvals.",
    )


# -- what is over --------------------------------------------------------------------------------


def done(work: Work, scene: Scene) -> Concern | None:
    """The turn is over, and a check passed after its last edit."""
    passed = work.passed
    if not work.over_at or passed is None or work.child or scene.waits:
        return None
    kept = "committed" if work.committed else "nothing committed"
    return Concern(
        cause="done",
        key=_key(work),
        at=work.over_at,
        fact=f"{_quoted(work.closing)}{passed.family} passed, {kept}.",
        evidence="last check ended with exit 0 after the last edit, high",
        step="Read what it says, and review the change.",
        seq=passed.seq,
    )


def _quoted(words: str) -> str:
    if not words:
        return ""
    end = words.find(". ")
    first = words[: end + 1] if 0 < end < 140 else words
    return f"“{first if len(first) <= 140 else first[:139] + '…'}” "


def _key(work: Work) -> str:
    return f"{work.child} {work.turn}".strip()


def _most(rows: Iterable[Row], least: int) -> Row | None:
    found = [row for row in rows if row.count >= least]
    return max(found, key=lambda row: (row.count, row.at), default=None)


def _minutes(ms: int) -> str:
    minutes = ms // 60_000
    return plural(minutes, "minute") if minutes < 120 else plural(minutes // 60, "hour")


DETECTORS: dict[str, Detector] = {
    "sign-in": sign_in_needed,
    "limit": limit,
    "wall": wall,
    "conflict": conflict,
    "quiet": quiet,
    "long": long_command,
    "repeats": repeats,
    "failing": failing,
    "spinning": spinning,
    "undone": undone,
    "retrying": retrying,
    "network": network,
    "context": context,
    "spend": spend,
    "asks": asks,
    "backlog": backlog,
    "done": done,
}
