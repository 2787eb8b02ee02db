"""Now in the terminal: sessions by what they do, those that need you first, changing as they do."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, ClassVar, Literal, cast

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from textual import constants, events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input
from textual.worker import WorkerFailed

from whyfor.cli.console import CleanConsole
from whyfor.cli.screen import words
from whyfor.cli.screen.talk import ConversationScreen
from whyfor.cli.screen.widgets import CleanText
from whyfor.config import Settings
from whyfor.live.board import NowBoard, PreviewCache, SessionCard
from whyfor.model.attention import Firing
from whyfor.model.errors import WhyforError
from whyfor.model.status import LiveStatus
from whyfor.model.text import label
from whyfor.service.top import follow, standings

ColorSystem = Literal["auto", "standard", "256", "truecolor", "windows"]
PRINTABLE = r"[^\x00-\x1f\x7f-\x9f]*"
STILL = 2.0  # seconds after a key for which nothing moves
KEYS = (
    ("j k ↓ ↑", "next, previous session; in a session: scroll"),
    ("Enter", "open the session"),
    ("/", "filter; Esc clears it"),
    ("Esc", "back"),
    ("n p", "in a session: next, previous prompt"),
    ("e", "in a session: unfold or fold all"),
    ("g G", "in a session: beginning, end (and follow)"),
    ("c", "in a session: copy the command that resumes it"),
    ("?", "these keys"),
    ("q", "quit; in a session: back"),
)


def run_screen(settings: Settings) -> None:
    """Until it is quit. The terminal is as it was when this returns or raises."""
    gc.enable()  # a long life, unlike other commands'
    app = Top(settings)
    app.run(mouse=False)
    if app.fault is not None:
        raise app.fault


class Listener:
    """What the loop's thread tells is done in the app's; when that is gone, nobody listens."""

    def __init__(self, app: Top, loop: asyncio.AbstractEventLoop) -> None:
        self.trouble: str | None = None
        self._app, self._loop = app, loop

    def publish(self) -> None:
        self.call(self._app.heard)

    def stand(self, standings: Iterable[LiveStatus]) -> None:
        found = list(standings)
        self.call(lambda: self._app.stand(found))

    def attend(self, firings: list[Firing], told: list[Firing]) -> None:
        self.call(lambda: self._app.attend(firings, told))

    def call(self, work: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(work)


class Heading(CleanText):
    def __init__(self, key: str, number: int) -> None:
        super().__init__(classes="heading")
        self.key = key
        self.tell(number)

    def tell(self, number: int) -> None:
        shape, word, style = words.SHAPE[self.key]
        self.update(Text.assemble((f"{shape} {word}", style), (f"  {number}", "dim")))


class SessionRow(CleanText):
    """A session in the list."""

    def __init__(self, card: SessionCard) -> None:
        super().__init__(classes="row")
        self.key = card.name
        self._shown: object = None
        self.tell(card)

    def tell(self, card: SessionCard) -> None:
        """Drawn anew only if it reads otherwise."""
        self.card = card
        self._age = words.old(card)
        lines = (
            words.card_lines(card)
            if card.status.phase in ("waiting_approval", "waiting", "running")
            else None
        )
        shown = (
            card.status.phase,
            words.title(card),
            self._age,
            lines,
            words.activity(card),
            words.where(card),
        )
        if shown != self._shown:
            self._shown = shown
            self.update(_brief(card, self._age) if lines is None else _full(card, self._age, lines))

    def tick(self) -> None:
        if words.old(self.card) != self._age:
            self.tell(self.card)


def _full(card: SessionCard, old: str, lines: list[Text]) -> RenderableType:
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    grid.add_column(width=2, no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_row(words.mark(card), Text(words.title(card), "bold"), Text(old, "dim"))
    return Group(grid, *(Padding(line, (0, 0, 0, 3)) for line in lines))


def _brief(card: SessionCard, old: str) -> RenderableType:
    shape, word, style = words.SHAPE["failed" if card.status.failed else card.status.phase]
    grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
    grid.add_column(width=2, no_wrap=True)
    grid.add_column(width=9, no_wrap=True)
    grid.add_column(ratio=3, no_wrap=True, overflow="ellipsis")
    grid.add_column(ratio=2, no_wrap=True, overflow="ellipsis")
    grid.add_column(justify="right", no_wrap=True)
    where = Text(words.where(card), "dim")
    grid.add_row(
        words.mark(card),
        Text(f"{shape} {word}", style),
        Text(words.title(card)),
        where,
        Text(old, "dim"),
    )
    return grid


class KeyHelp(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "close")
    ]

    def compose(self) -> ComposeResult:
        made = Text("Keys\n\n", "bold")
        for keys, does in KEYS:
            made.append(f"{keys:<9}", "bold")
            made.append(f"{does}\n", "not bold")
        with VerticalScroll(id="sheet"):
            yield CleanText(made)


class Top(App[None]):
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None  # keys are commands until somebody filters
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "quit", priority=False),
        Binding("j,down", "choose(1)", "next"),
        Binding("k,up", "choose(-1)", "previous"),
        Binding("pagedown,space", "leap(1)", "page down"),
        Binding("pageup,b", "leap(-1)", "page up"),
        Binding("g,home", "edge(0)", "first"),
        Binding("G,end", "edge(-1)", "last"),
        Binding("enter,l", "open", "open"),
        Binding("slash", "filter", "filter"),
        Binding("escape", "clear", "clear the filter"),
        Binding("question_mark", "keys", "keys"),
    ]
    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    #lede, #hints, #head { height: auto; padding: 0 1; }
    #lede { height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
    #head { border-bottom: solid ansi_blue; }
    #trouble { height: auto; max-height: 4; padding: 0 1; color: ansi_yellow; display: none; }
    #attention { height: auto; max-height: 7; padding: 0 1; display: none; }
    #board, #talk { height: 1fr; background: ansi_default; scrollbar-size-vertical: 1; }
    #empty { padding: 1; height: auto; }
    #hints { height: 1; text-style: dim; text-wrap: nowrap; text-overflow: ellipsis; }
    #filter { display: none; height: 1; border: none; padding: 0 1; background: ansi_default; }
    .heading { height: 1; margin-top: 1; padding: 0 1; }
    .row { height: auto; padding: 0 1 0 0; border-left: blank; }
    .row.-chosen { border-left: thick ansi_blue; }
    .item { height: auto; padding: 0 1; }
    .item-prompt { border-left: thick ansi_blue; margin: 1 0; }
    #earlier, #ask { height: auto; padding: 0 1; }
    #ask { margin: 1 0; }
    Keys { align: center middle; background: ansi_default; }
    #sheet { width: 62; max-width: 100%; height: auto; max-height: 100%; }
    #sheet { border: round ansi_blue; padding: 0 1; }
    """

    def __init__(self, settings: Settings, *, watching: bool = True) -> None:
        super().__init__(ansi_color=True)
        self.console = CleanConsole(
            color_system=cast(ColorSystem, constants.COLOR_SYSTEM),
            file=self.console.file,
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
            force_terminal=True,
            safe_box=False,
        )
        self.theme = "ansi-dark"
        self.settings = settings
        self.fault: Exception | None = None
        self.rows: dict[str, SessionRow] = {}
        self.chosen: str | None = None
        self.sought = ""
        self._watching = watching
        self._glances = PreviewCache(settings)
        # None: nobody has told yet
        self._standings: list[LiveStatus] | None = None if watching else []
        self._shown: NowBoard | None = None
        self._firings: list[Firing] = []
        self._news = asyncio.Event()
        self._touched = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._listener: Listener | None = None

    def compose(self) -> ComposeResult:
        yield CleanText("Now", id="lede")
        yield CleanText(id="trouble")
        yield CleanText(id="attention")
        with VerticalScroll(id="board", can_focus=False):
            yield CleanText("Looking …", id="empty")
        asked = "Filter: words of a title, project, branch, agent, status"
        yield Input(placeholder=asked, id="filter", restrict=PRINTABLE)
        yield CleanText("j k choose  Enter open  / filter  ? keys  q quit", id="hints")

    # -- running ----------------------------------------------------------------------------------

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        self._listener = Listener(self, loop)
        if threading.current_thread() is threading.main_thread() and sys.platform != "win32":
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                loop.add_signal_handler(number, self.exit)
        self.run_worker(self._tell_on())
        self.set_interval(1.0, self._tick)
        if self._watching:
            self._thread = threading.Thread(target=self._follow, name="whyfor-watch", daemon=True)
            self._thread.start()

    def _follow(self) -> None:
        listener = self._listener
        assert listener is not None

        def say(words_: str) -> None:
            listener.call(lambda: self.notify(words_, severity="warning"))

        def ring(text: str) -> None:
            listener.call(lambda: self._ring(text))

        follow(self.settings, listener, self._stop, say, self._looked_at, ring)

    def _ring(self, text: str) -> None:
        """Write to the terminal between two frames, as all that is drawn is written."""
        if self._driver is not None:
            self._driver.write(text)
            self._driver.flush()

    def on_unmount(self) -> None:
        self._stop.set()

    def _has_lost_terminal(self) -> bool:
        """Whether the window was closed: not everybody who closes one sends a signal."""
        return not self.is_headless and sys.__stdin__ is not None and not sys.__stdin__.isatty()

    def notify(
        self, message: str, *, title: str = "", markup: bool = False, **options: Any
    ) -> None:
        super().notify(label(message), title=label(title), markup=markup, **options)

    def _fatal_error(self) -> None:
        """The terminal is left first; then the error is told as every other is, not with what
        variables held."""
        error = self._exception
        self.fault = (
            error.error
            if isinstance(error, WorkerFailed) and isinstance(error.error, Exception)
            else error
        )
        self._close_messages_no_wait()

    def _looked_at(self) -> tuple[str, ...]:
        screen = self.screen if self.app_focus and self.is_running else None
        return (screen.card.name,) if isinstance(screen, ConversationScreen) else ()

    # -- what is told -----------------------------------------------------------------------------

    def heard(self) -> None:
        if isinstance(self.screen, ConversationScreen):
            self.screen.heard()

    def stand(self, standings: list[LiveStatus]) -> None:
        self._standings = standings
        self._news.set()

    def attend(self, firings: list[Firing], told: list[Firing]) -> None:
        self._firings = firings
        self._news.set()

    async def _tell_on(self) -> None:
        """However fast news come, they are read one after the other."""
        self._news.set()
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                # who reads has other work first: what the store knows is told at once
                if self._standings is None:
                    known = await asyncio.to_thread(standings, self.settings)
                    self._standings = known if self._standings is None else self._standings
                self._shown = await asyncio.to_thread(self._glances.board, self._standings)
            except (
                WhyforError
            ) as error:  # the store cannot be read: what is shown stays, and it is tried again
                self._tell_trouble([f"! {words.shown_name(error.message)}. {error.hint}"])
                self.set_timer(STILL, self._news.set)
                continue
            await self.show()

    @property
    def board(self) -> VerticalScroll:
        return self.screen_stack[0].query_one("#board", VerticalScroll)

    def _told(self, name: str) -> CleanText:
        return self.screen_stack[0].query_one(name, CleanText)

    async def show(self) -> None:
        board = self._shown
        if board is None:
            return
        self._told("#lede").update(words.lede(board))
        self._tell_trouble(self._troubles(board))
        self._tell_attention(board)
        cards = [
            card
            for group in board.groups.values()
            for card in group
            if self.sought in words.sought(card)
        ]
        groups: dict[str, list[SessionCard]] = {}
        for key, group in board.groups.items():
            if found := [card for card in group if card in cards]:
                groups[key] = found
        order = [
            name
            for key, group in groups.items()
            for name in (f"={key}", *(card.name for card in group))
        ]
        if order != self._order() and self._moving():
            known = {card.name: card for card in cards}
            for name, row in self.rows.items():
                if name in known:
                    row.tell(known[name])
            self.set_timer(STILL, self._news.set)
            return
        await self._arrange(groups, order)
        empty = self._told("#empty")
        empty.display = not order
        empty.update(self._nothing(board))
        for screen in self.screen_stack:
            if isinstance(screen, ConversationScreen) and screen.is_mounted:
                self._retell(screen, board)

    def _retell(self, screen: ConversationScreen, board: NowBoard) -> None:
        for group in board.groups.values():
            for card in group:
                if card.name == screen.card.name:
                    screen.tell(card)

    def _nothing(self, board: NowBoard) -> Text:
        if board.empty:
            return Text("Nothing captured yet. Run this once in a repository: whyfor init")
        if self.sought:
            return Text("No session fits. Esc clears the filter.")
        return Text(
            "No agent is working. Start one in any captured project; it shows up here within a "
            "second."
        )

    def _troubles(self, board: NowBoard) -> list[str]:
        told = [
            f"! Nothing is recorded {words.shown_name(pause.where)}. Record again: "
            f"{words.shown_name(pause.resume)}"
            for pause in board.paused
        ]
        if self._listener is not None and self._listener.trouble:
            trouble = words.shown_name(self._listener.trouble)
            told.insert(0, f"! Capture is stuck: {trouble}. See: whyfor doctor")
        told += [
            f"! Its hooks are silent: {one.agent}. See: whyfor doctor"
            for one in board.health
            if one.silent
        ]
        return told

    def _tell_trouble(self, told: list[str]) -> None:
        bar = self._told("#trouble")
        bar.display = bool(told)
        bar.update(Text("\n".join(told)))

    def _tell_attention(self, board: NowBoard) -> None:
        """What needs a person, a line each; the rest is a number."""
        lines = words.attention_lines(self._firings, board)
        bar = self._told("#attention")
        bar.display = bool(lines)
        bar.update(Text("\n").join(lines))

    def _moving(self) -> bool:
        return bool(self.rows) and time.monotonic() < self._touched + STILL

    def _order(self) -> list[str]:
        return [key for child in self.board.children if (key := _key(child))]

    async def _arrange(self, groups: dict[str, list[SessionCard]], order: list[str]) -> None:
        board = self.board
        headings = {
            f"={child.key}": child for child in board.children if isinstance(child, Heading)
        }
        with self.batch_update():
            gone = [each for name, each in {**self.rows, **headings}.items() if name not in order]
            await board.remove_children(gone)
            self.rows = {name: row for name, row in self.rows.items() if name in order}
            fresh: list[CleanText] = []
            for key, cards in groups.items():
                if (heading := headings.get(f"={key}")) is not None:
                    heading.tell(len(cards))
                else:
                    fresh.append(Heading(key, len(cards)))
                for card in cards:
                    if (row := self.rows.get(card.name)) is not None:
                        row.tell(card)
                    else:
                        self.rows[card.name] = row = SessionRow(card)
                        fresh.append(row)
            if fresh:
                await board.mount_all(fresh)
            place = {name: at for at, name in enumerate(order)}
            board.sort_children(key=lambda child: place.get(_key(child), -1))
            self._choose(order)

    def _choose(self, order: list[str]) -> None:
        """What was chosen stays so wherever it moves; if it is gone, the first."""
        if self.chosen not in self.rows:
            self.chosen = next((name for name in order if name in self.rows), None)
        for name, row in self.rows.items():
            row.set_class(name == self.chosen, "-chosen")

    def _tick(self) -> None:
        if self._has_lost_terminal():
            self.exit()
        for row in self.rows.values():
            row.tick()

    # -- keys -------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        self._touched = time.monotonic()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In a session and on the sheet keys mean something else."""
        if action in ("choose", "leap", "edge", "open", "filter", "clear"):
            return len(self.screen_stack) == 1
        return True

    def _listed(self) -> list[SessionRow]:
        return [child for child in self.board.children if isinstance(child, SessionRow)]

    def action_choose(self, way: int) -> None:
        """What is taller than the screen is scrolled through first: all of a command can be
        read."""
        rows, board = self._listed(), self.board
        at = next((at for at, row in enumerate(rows) if row.key == self.chosen), None)
        if at is None:
            return
        region, top, height = rows[at].virtual_region, board.scroll_y, board.size.height
        if way > 0 and region.bottom > top + height and region.y >= top - region.height:
            board.scroll_to(y=min(region.bottom - height, top + height - 2), animate=False)
        elif way < 0 and region.y < top:
            board.scroll_to(y=max(region.y - 1, top - height + 2, 0), animate=False)
        elif 0 <= at + way < len(rows):
            self._go(rows[at + way], from_below=way < 0)

    def _go(self, row: SessionRow, *, from_below: bool = False) -> None:
        self.chosen = row.key
        self._choose([])
        board, region = self.board, row.virtual_region
        first = row is self._listed()[0]
        if region.height >= board.size.height:
            y = region.bottom - board.size.height if from_below else region.y - 1
            board.scroll_to(y=max(0, y), animate=False)
        elif first:
            board.scroll_home(animate=False)
        elif region.y < board.scroll_y:
            board.scroll_to(y=region.y - 1, animate=False)
        elif region.bottom > board.scroll_y + board.size.height:
            board.scroll_to(y=region.bottom - board.size.height, animate=False)

    def action_leap(self, way: int) -> None:
        rows, board = self._listed(), self.board
        at = next((at for at, row in enumerate(rows) if row.key == self.chosen), None)
        if at is None:
            return
        aim = rows[at].virtual_region.y + way * board.size.height
        there = min(rows, key=lambda row: abs(row.virtual_region.y - aim))
        self._go(there, from_below=way < 0)

    def action_edge(self, at: int) -> None:
        if rows := self._listed():
            self._go(rows[at])

    def action_open(self) -> None:
        row = self.rows.get(self.chosen or "")
        if row is None:
            return
        if not row.card.session.id:
            self.notify("Nothing of its transcript was read yet.")
            return
        self.push_screen(ConversationScreen(self.settings, row.card))

    def action_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    async def action_clear(self) -> None:
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.set_focus(None)

    @on(Input.Changed, "#filter")
    async def _filter(self, event: Input.Changed) -> None:
        self.sought = event.value.strip().casefold()
        self._touched = 0.0
        await self.show()

    @on(Input.Submitted, "#filter")
    def _filtered(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = bool(field.value)
        self.set_focus(None)

    def action_keys(self) -> None:
        if not isinstance(self.screen, KeyHelp):
            self.push_screen(KeyHelp())


def _key(child: object) -> str:
    return (
        f"={child.key}"
        if isinstance(child, Heading)
        else child.key
        if isinstance(child, SessionRow)
        else ""
    )
