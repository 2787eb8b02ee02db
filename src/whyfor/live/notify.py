"""Notify a person that a session needs them: on the desktop or with a command of theirs, if they
asked for it.

Each change is reported once, after redaction, and the loop never waits for it.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from whyfor import config, files
from whyfor.config import Settings
from whyfor.live.project_names import ProjectNames
from whyfor.live.push import MISSING, Ring, has_apprise, push, ring_text
from whyfor.model.attention import Firing, Level
from whyfor.model.errors import BadInput, WhyforError
from whyfor.model.status import LiveStatus, Status
from whyfor.model.text import one_line
from whyfor.model.times import wall_clock
from whyfor.store.open import reading
from whyfor.story.attention.alerts import AlertGate, AlertGroup, parse_hours
from whyfor.story.recent_turns import recent_turns
from whyfor.story.status.standing import StatusSink
from whyfor.story.summary import NOTHING_YET, summarise

Change = Literal["waiting_approval", "waiting", "failed", "finished"]
CHANGES: tuple[Change, ...] = ("waiting_approval", "waiting", "failed", "finished")
WORDS = {
    "waiting_approval": "Needs approval",
    "waiting": "Waiting for you",
    "failed": "Failed",
    "finished": "Finished",
    "test": "Test",
}
NEWS = 120_000  # ms: what began before is no news, only new to us
SAME = 2_000  # ms between two accounts of one moment
SECONDS = 10.0  # a command has
# Kinds of events that others of the same turn follow.
_IN_A_TURN = ("user.prompt", "assistant.thinking", "tool.call", "tool.result")
RECORDED = 3.0  # seconds the record of a change is waited for
WAITING = 32  # notices that may wait for it; the oldest give way
TEXT_MAX = 400
HINT = "See: docs/notifications.md"
_FAILED = "notify.failed"
STOPPED = 60_000  # ms in which a turn that stopped is told once, as a change or as what it needs
_STOPPED = ("sign-in", "limit", "retrying")
_AT_WORK = ("running", "waiting_approval")
_OVER = ("waiting", "exited", "idle")
# The words are arguments or in the environment: nothing of them is ever part of a program's text.
_OSASCRIPT = (
    *("-e", "on run argv"),
    *("-e", "display notification (item 2 of argv) with title (item 1 of argv)"),
    *("-e", "end run"),
)
_POWERSHELL = """
$manager = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType=WindowsRuntime]
$toast = $manager::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$lines = $toast.GetElementsByTagName('text')
$null = $lines.Item(0).AppendChild($toast.CreateTextNode($env:WHYFOR_NOTIFY_HEAD))
$null = $lines.Item(1).AppendChild($toast.CreateTextNode($env:WHYFOR_NOTIFY_BODY))
$manager::CreateToastNotifier('Whyfor').Show([Windows.UI.Notifications.ToastNotification]::new($toast))
"""


class NotifySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[notify] in config.toml."""

    desktop: bool = False
    command: list[str] = []
    when: tuple[Change, ...] = CHANGES
    finished_after: Annotated[float, msgspec.Meta(ge=0)] = 5  # minutes a turn must have taken
    url: list[str] = []  # addresses of services, for Apprise
    terminal: tuple[Ring, ...] = ()  # how `top` rings
    levels: tuple[Level, ...] = ("act", "look")  # of what needs attention
    quiet: str = ""  # hours in which nothing is sent: 22:00-07:00
    quiet_act: bool = False  # but what cannot go on without a person

    @property
    def any(self) -> bool:
        ways = self.desktop or self.command or self.url or self.terminal
        return bool(ways and (self.when or self.levels))

    def is_quiet(self, level: Level, now: datetime) -> bool:
        """Whether nothing of this level is sent at a time."""
        hours = parse_hours(self.quiet)
        if hours is None or not hours.holds(now):
            return False
        return not (level == "act" and self.quiet_act)


class Terminal(msgspec.Struct, frozen=True):
    """The terminal that somebody watches in. `alone`: all other ways are another process's."""

    write: Callable[[str], None] | None = None
    alone: bool = False


class Notification(msgspec.Struct, frozen=True):
    """What a person is notified of."""

    status: Change | Literal["attention", "test"]
    session: str  # agent:id
    project: str
    title: str
    text: str
    summary: str = ""  # not told: secrets in it give their beginnings in the title away
    word: str = ""  # for what needs attention: how it is called
    level: str = ""


def notify_settings(settings: Settings) -> NotifySettings:
    try:
        found = msgspec.convert(settings.notify, NotifySettings)
        parse_hours(found.quiet)
        return found
    except (msgspec.ValidationError, ValueError) as error:
        raise BadInput(f"[notify] in config.toml is not right: {error}", HINT) from None


# -- what is worth telling -----------------------------------------------------------------------


class _Known(msgspec.Struct):
    """Of a session: where it stood, since when its turn has been at work, and up to when
    everything is told."""

    status: Status
    began: int | None = None
    told: int = 0


class NoticeFinder:
    """Finds what a person would want to know in what is told of all sessions, again and again."""

    def __init__(self, now: Callable[[], int] = wall_clock) -> None:
        self._now = now
        # what stands when somebody begins to watch is no change
        self._known: dict[str, _Known] | None = None

    def among(self, standings: Iterable[LiveStatus]) -> list[tuple[LiveStatus, Change, int | None]]:
        """Return what changed, with how long the turn took that is over, if that is known."""
        before, self._known = self._known, {}
        found: list[tuple[LiveStatus, Change, int | None]] = []
        for standing in standings:
            status = standing.status
            known = (before or {}).get(standing.name) or _Known(Status("unknown", "", "low"))
            change = self._change(known, status) if before is not None else None
            told = known.told
            if change is not None or before is None:
                told = _at(status)
            self._known[standing.name] = _Known(status, _began(known, status), told)
            if change is not None:
                found.append((standing, change, self._took(known, status)))
        return found

    def _took(self, known: _Known, status: Status) -> int | None:
        over = status.phase in _OVER and not status.questions
        return status.since - known.began if over and known.began and status.since else None

    def _change(self, known: _Known, status: Status) -> Change | None:
        at, before = _at(status), known.status
        if at <= known.told + SAME or at < self._now() - NEWS or status.interrupted:
            return None
        if status.phase == "waiting_approval":
            return "waiting_approval"
        if status.phase in _OVER and status.failed and not before.failed:
            return "failed"
        if status.phase == "waiting":
            new = before.phase != "waiting" or status.questions != before.questions
            return "waiting" if new else None
        if status.phase == "exited" and before.phase == "running":
            return "finished"
        return None


def _at(status: Status) -> int:
    return (status.approval.asked_at if status.approval else status.since) or 0


def _began(known: _Known, status: Status) -> int | None:
    """A turn goes on while it waits for an answer."""
    if status.phase in _AT_WORK or status.questions:
        return known.began or status.since
    return known.began if status.phase == "unknown" else None


def _wanted(change: Change, took: int | None, wished: NotifySettings) -> Change | None:
    """Return what is told: a long turn's end as one; any other is a session that waits, if it
    still does."""
    long = took is not None and took >= wished.finished_after * 60_000
    if change in ("waiting", "finished") and long and "finished" in wished.when:
        return "finished"
    if change == "finished":
        return None
    return change if change in wished.when else None


def _level(change: Change, status: Status) -> Level:
    if change == "waiting_approval" or status.questions:
        return "act"
    return "look" if change == "failed" else "know"


def _text(status: Status, recent: str, change: Change, took: int | None) -> str:
    if change == "failed":
        return status.failed or ""
    if status.approval is not None:
        asked = status.approval
        return (
            ": ".join(filter(None, (asked.tool, asked.action or asked.path)))
            or "It does not tell what for."
        )
    if status.questions:
        return " ".join(status.questions)
    minutes = f"After {round((took or 0) / 60_000)} min. " if change == "finished" else ""
    return minutes + (recent or "What it said was not recorded.")


# -- telling -------------------------------------------------------------------------------------


class _Alert(msgspec.Struct, frozen=True):
    """What needs attention and is worth a notice."""

    settings: Settings
    wished: NotifySettings
    group: AlertGroup


class _Change(msgspec.Struct, frozen=True):
    """A change that is worth a notice, as it was when it was noticed."""

    settings: Settings
    wished: NotifySettings
    standing: LiveStatus
    wanted: Change
    took: int | None


def _has_words(standing: LiveStatus) -> bool:
    """Whether a notice of it would have a title and something to say."""
    if not standing.session.title:
        return False
    if _is_asked(standing.status):
        return True
    return standing.summary is not None and standing.summary.recent != NOTHING_YET


def _is_asked(status: Status) -> bool:
    """Whether the status itself says what a notice tells: a request, a question, a failure."""
    return bool(status.approval or status.questions or status.failed)


def _place_name(place: str) -> str:
    """A project's name; of one that is known only by its folder, the folder's."""
    parts = place.replace("\\", "/").rstrip("/").split("/")
    is_folder = place.startswith("/") or parts[0].endswith(":")
    return parts[-1] if is_folder else place


def _recorded(settings: Settings, standing: LiveStatus) -> tuple[LiveStatus, bool]:
    """The same with what the store knows of the session by now, and whether the transcript was
    read as far as a notice needs it: for a turn that is over, up to its closing words."""
    try:
        with reading(settings) as library:
            session = library.sessions.find(standing.session.session_id, standing.session.agent)
            turns, events = recent_turns(library, session.id)
    except WhyforError:
        return standing, _has_words(standing)  # nothing of it was read yet
    summary = summarise(turns, standing.status)
    found = msgspec.structs.replace(standing, session=session, summary=summary)
    is_over = bool(events) and events[-1].kind not in _IN_A_TURN
    return found, _has_words(found) and (is_over or _is_asked(standing.status))


def _named(settings: Settings, firing: Firing) -> tuple[str, str]:
    """Title and project of a firing's session, as far as they are known."""
    if firing.session_id is None:
        return "", ""
    try:
        with reading(settings) as library:
            session = library.sessions.find(firing.session_id, firing.agent)
    except WhyforError:
        return "", ""
    return session.title or "", session.project or ""


class Notifier:
    """Stands between the loop and its audience, and tells a person in a thread of its own."""

    def __init__(
        self,
        settings: Settings,
        hub: StatusSink,
        say: Callable[[str], None],
        looked_at: Callable[[], Collection[str]] = tuple,
        terminal: Terminal | None = None,
    ) -> None:
        self.settings = settings
        self.hub = hub
        self._terminal = terminal or Terminal()
        self._gate = AlertGate()
        self._told: dict[tuple[str, str], int] = {}  # of a session: when a failure was told last
        self._say = say  # told why notices fail, once
        self._names = ProjectNames(settings)
        self._looked_at = looked_at  # sessions that a person has before them: agent:id
        self._changes = NoticeFinder()
        self._queue: queue.Queue[_Change | _Alert | None] = queue.Queue(WAITING)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._said: set[str] = set()

    @property
    def trouble(self) -> str | None:
        return self.hub.trouble

    @trouble.setter
    def trouble(self, words: str | None) -> None:
        self.hub.trouble = words

    def publish(self) -> None:
        self.hub.publish()

    def stand(self, standings: Iterable[LiveStatus]) -> None:
        standings = list(standings)
        self.hub.stand(standings)
        for standing, change, took in self._changes.among(standings):
            self._notice(standing, change, took)

    def attend(self, firings: list[Firing], told: list[Firing]) -> None:
        self.hub.attend(firings, told)
        if told:
            self._alert(told)

    def _alert(self, told: list[Firing]) -> None:
        loaded = self._wished()
        if loaded is None:
            return
        settings, wished = loaded
        kept = [each for each in told if self._is_wanted(each, wished)]
        groups = self._gate.pick(kept, wall_clock())
        for group in groups:
            self._begin()
            self._put(_Alert(settings, wished, group))

    def _wished(self) -> tuple[Settings, NotifySettings] | None:
        """What config.toml says now: changes are few, and it may have been edited since; None if
        nothing is wished for."""
        try:
            settings = config.load(self.settings.env)
            wished = notify_settings(settings)
        except WhyforError as error:
            self._failed(error.message)
            return None
        if self._terminal.alone:
            wished = msgspec.structs.replace(wished, desktop=False, command=[], url=[])
        return (settings, wished) if wished.any else None

    def _is_wanted(self, firing: Firing, wished: NotifySettings) -> bool:
        """Not what is muted, open before somebody, kept for later, or told as a change already."""
        cause, level = firing.found.cause, firing.level
        if firing.muted or level not in wished.levels or firing.session in self._looked_at():
            return False
        if wished.is_quiet(level, datetime.now()):
            return False
        if cause == "asks" and level != "act" and "waiting" in wished.when:
            return False
        return cause not in _STOPPED or self._is_first(firing.session)

    def _is_first(self, session: str) -> bool:
        """Whether nobody was told within a minute that a turn of this session stopped."""
        now = wall_clock()
        before = self._told.get((session, "failed"), 0)
        if now - before < STOPPED:
            return False
        self._told = {key: at for key, at in self._told.items() if now - at < STOPPED}
        self._told[session, "failed"] = now
        return True

    def _notice(self, standing: LiveStatus, change: Change, took: int | None) -> None:
        loaded = self._wished()
        if loaded is None:
            return
        settings, wished = loaded
        wanted = _wanted(change, took, wished)
        if wanted is None or standing.name in self._looked_at():
            return
        if wished.is_quiet(_level(wanted, standing.status), datetime.now()):
            return
        if wanted == "failed" and not self._is_first(standing.name):
            return
        self._begin()
        self._put(_Change(settings, wished, standing, wanted, took))

    def _attention(self, alert: _Alert) -> Notification:
        """What is told of something that needs attention, or of several that share a cause."""
        first = alert.group.first
        number = len(alert.group.firings)
        title, project = _named(alert.settings, first)
        text = first.found.fact
        if number > 1:
            title, text = f"{number} sessions", f"{text} So it is in {number} sessions."
        place = project and self._names(project)
        return Notification(
            "attention",
            first.session,
            _place_name(place or project or ""),
            title,
            f"{text} {first.found.step}",
            word=first.word,
            level=alert.group.level,
        )

    def _notification(self, change: _Change) -> Notification:
        """What is told of a change. A hook is ahead of the transcript: its record is waited for,
        but not for long."""
        end = time.monotonic() + RECORDED
        standing, complete = _recorded(change.settings, change.standing)
        while not complete and time.monotonic() < end and not self._closing.wait(0.1):
            standing, complete = _recorded(change.settings, standing)
        session, summary = standing.session, standing.summary
        project = session.project and self._names(session.project)
        recent = summary.recent if summary and summary.recent != NOTHING_YET else ""
        return Notification(
            change.wanted,
            standing.name,
            _place_name(project or session.project or session.cwd or ""),
            session.title or "",
            _text(standing.status, recent, change.wanted, change.took),
            str(summary) if summary else "",
            level=_level(change.wanted, standing.status),
        )

    def _put(self, item: _Change | _Alert | None) -> None:
        """Queue a notice, or None for the end; the oldest is dropped if too many wait."""
        while True:
            try:
                self._queue.put_nowait(item)
                return
            except queue.Full:
                with suppress(queue.Empty):
                    self._queue.get_nowait()
                self._failed(f"more than {WAITING} notices waited; the oldest were dropped")

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="whyfor-notify", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                if isinstance(item, _Alert):
                    notice = self._attention(item)
                else:
                    notice = self._notification(item)
                wrong = send_notice(item.settings, item.wished, notice, self._terminal.write)
            except WhyforError as error:  # redaction: nothing leaves
                wrong = [error.message]
            except Exception as error:  # noqa: BLE001 - a fault of ours must not end all notices to come
                wrong = [f"{type(error).__name__}: {error}"]
            for words in wrong:
                self._failed(words)
            if not wrong:
                self._said.clear()
                with suppress(OSError):
                    (self.settings.home / _FAILED).unlink(missing_ok=True)

    def close(self) -> None:
        """What waits is still told, if it does not take long."""
        self._closing.set()
        if self._thread is not None:
            self._put(None)
            self._thread.join(1.0)

    def _failed(self, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            self._say(f"A notification could not be sent: {words}")
            with suppress(OSError):
                files.replace(self.settings.home / _FAILED, words.encode("utf-8", "replace"))


def send_notice(
    settings: Settings,
    wished: NotifySettings,
    notice: Notification,
    terminal: Callable[[str], None] | None = None,
) -> list[str]:
    """Send a notice in all ways that are wished for; return what went wrong with them."""
    from whyfor.privacy.redacted_text import redacted  # here: most only ask for the settings

    notice, _ = redacted(settings, notice, rendered=True, session=notice.session)
    names = ("status", "session", "project", "title", "text", "level")
    words = {name: _short(getattr(notice, name)) for name in names}
    ways = []
    if wished.command:
        given = {f"WHYFOR_NOTIFY_{name.upper()}": value for name, value in words.items()}
        ways.append(([_at_home(wished.command[0], settings), *wished.command[1:]], given))
    if wished.desktop:
        ways.append(_desktop(words, notice))
    head, body = _head_and_body(words, notice)
    if wished.terminal and terminal is not None:
        terminal(ring_text(wished.terminal, head, body))
    place = str(settings.user_home) if settings.user_home.is_dir() else None
    results = [_run(argv, {**settings.env, **more}, place) for argv, more in ways]
    pushed = push(wished.url, head, body) if wished.url else []
    return [*(wrong for wrong in results if wrong), *pushed]


def _at_home(program: str, settings: Settings) -> str:
    return str(settings.user_home / program[2:]) if program.startswith("~/") else program


def _short(text: str) -> str:
    """One line that any program can be given: no control characters, and nothing it could take
    for an option."""
    line = one_line(text)
    if line.startswith("-"):
        line = "–" + line[1:]
    return line if len(line) <= TEXT_MAX else line[: TEXT_MAX - 1] + "…"


def _run(argv: list[str], env: Mapping[str, str], cwd: str | None) -> str | None:
    """What went wrong. Never through a shell, never for long, never in the way of a terminal."""
    program = shutil.which(argv[0], path=env.get("PATH")) if argv[0] else None
    if program is None:
        return f"there is no program {argv[0]!r}"
    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    try:
        process = subprocess.Popen(
            [program, *argv[1:]], env=dict(env), cwd=cwd, start_new_session=True, **quiet
        )
    except (OSError, ValueError) as error:
        return f"{argv[0]} cannot be run: {error}"
    try:
        code = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        _kill(process)
        return f"{argv[0]} took longer than {SECONDS:.0f} s"
    return f"{argv[0]} ended with exit code {code}" if code else None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With what it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _program() -> str:
    return {"darwin": "osascript", "win32": "powershell"}.get(sys.platform, "notify-send")


def _head_and_body(words: Mapping[str, str], notice: Notification) -> tuple[str, str]:
    """Return the two lines that every way shows."""
    project = words["project"].replace("\\", "/").rstrip("/").rpartition("/")[2]
    head = (notice.word or WORDS[notice.status]) + (f" · {project}" if project else "")
    return head, " – ".join(filter(None, (words["title"], words["text"])))


def _desktop(words: Mapping[str, str], notice: Notification) -> tuple[list[str], dict[str, str]]:
    """Return the command that shows a notice on this desktop, and what its environment needs."""
    head, body = _head_and_body(words, notice)
    program = _program()
    if program == "osascript":
        return [program, *_OSASCRIPT, head, body], {}
    if program == "powershell":
        told = {"WHYFOR_NOTIFY_HEAD": head, "WHYFOR_NOTIFY_BODY": body}
        return [program, "-NoProfile", "-NonInteractive", "-Command", _POWERSHELL], told
    # The desktop reads markup in the body, and notify-send backslashes.
    for sign, instead in {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "\\\\"}.items():
        body = body.replace(sign, instead)
    is_urgent = notice.status == "waiting_approval" or notice.level == "act"
    urgent = "critical" if is_urgent else "normal"
    return [program, "--app-name=Whyfor", f"--urgency={urgent}", "--", head, body], {}


# -- for doctor ----------------------------------------------------------------------------------


def notify_complaints(settings: Settings) -> list[str]:
    """Why notices that were asked for do not come."""
    try:
        wished = notify_settings(settings)
    except BadInput as error:
        return [error.message]
    if not wished.any:
        return []
    lacks = [MISSING] if wished.url and not has_apprise() else []
    wanted = [_program()] if wished.desktop else []
    wanted += [_at_home(name, settings) for name in wished.command[:1]]
    path = settings.env.get("PATH")
    missing = [name for name in wanted if not name or shutil.which(name, path=path) is None]
    found = [f"[notify] in config.toml: there is no program {name!r}" for name in missing]
    found += lacks
    with suppress(OSError):
        last = (settings.home / _FAILED).read_text(encoding="utf-8", errors="replace")
        found.append(f"the last notification could not be sent: {one_line(last)}")
    return found
