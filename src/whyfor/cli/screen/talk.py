"""A session in the terminal: its conversation from its end backwards, growing as the agent goes
on."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.console import Group, RenderableType
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen

from whyfor.cli.screen import words
from whyfor.cli.screen.items import render_item
from whyfor.cli.screen.widgets import CleanText
from whyfor.config import Settings
from whyfor.live.board import SessionCard
from whyfor.model.conversation import Item, PageRange
from whyfor.model.errors import WhyforError
from whyfor.model.text import label
from whyfor.service.show import resume_command, session_part

END = 1 << 62
# that are kept on the screen while it follows; earlier ones are read again when one goes back to
# them
PAGES = 12
EVERY = 0.3  # seconds between two looks at a session that grows


class ItemRow(CleanText):
    """One item."""

    def __init__(self, item: Item, unfolded: bool) -> None:
        super().__init__(render_item(item, unfolded), classes=f"item item-{item.kind}")
        self.item = item

    def tell(self, item: Item, unfolded: bool) -> None:
        self.item = item
        self.update(render_item(item, unfolded))


class ConversationPage:
    def __init__(self, stretch: PageRange, unfolded: bool) -> None:
        self.first = stretch.first
        self.last = stretch.last
        self.rows = [ItemRow(item, unfolded) for item in _items(stretch)]


class ConversationScreen(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,h", "app.pop_screen", "back"),
        Binding("j,down", "down", "down"),
        Binding("k,up", "up", "up"),
        Binding("n", "prompt(1)", "next prompt"),
        Binding("p", "prompt(-1)", "previous prompt"),
        Binding("e", "unfold", "unfold all"),
        Binding("g,home", "first", "beginning"),
        Binding("G,end", "last", "end"),
        Binding("space,pagedown", "page(1)", "page down"),
        Binding("b,pageup", "page(-1)", "page up"),
        Binding("c", "copy", "copy the command that resumes it"),
        Binding("question_mark", "app.keys", "keys"),
    ]
    HINTS = "Esc back  j k scroll  n p prompts  e unfold  G end  ? keys"

    def __init__(self, settings: Settings, card: SessionCard) -> None:
        super().__init__()
        self.settings = settings
        self.card = card
        self.pages: list[ConversationPage] = []
        self.begins = 0  # the conversation's first event; none is before it
        self.unfolded = False
        self.follows = True  # until one goes back from the end
        self._news = asyncio.Event()
        self._loading = False

    def compose(self) -> ComposeResult:
        yield CleanText(id="head")
        # it has keys of its own, which know nothing of earlier pages
        with VerticalScroll(id="talk", can_focus=False):
            yield CleanText(id="earlier")
            yield CleanText(id="ask")
        yield CleanText(self.HINTS, id="hints")

    @property
    def scroll(self) -> VerticalScroll:
        return self.query_one("#talk", VerticalScroll)

    def on_mount(self) -> None:
        self.tell(self.card)
        self.run_worker(self._follow(), exit_on_error=True)

    def tell(self, card: SessionCard) -> None:
        """Where the session stands now."""
        self.card = card
        shape, word, style = words.SHAPE["failed" if card.status.failed else card.status.phase]
        head = Text.assemble(
            words.mark(card), " ", (words.title(card), "bold"), no_wrap=True, overflow="ellipsis"
        )
        under = Text.assemble(
            (f"{shape} {word}", style), ("  " + words.where(card), "dim"), no_wrap=True
        )
        self.query_one("#head", CleanText).update(Group(head, under))
        ask = self.query_one("#ask", CleanText)
        asked: list[RenderableType] = [*words.request(card)]
        if asked:
            asked.insert(0, Text("◆ Needs approval", "bold yellow"))
        elif card.status.phase == "running":
            asked = [Text(f"● {words.activity(card)}", "green")]
        ask.update(Group(*asked) if asked else "")
        ask.display = bool(asked)
        self._settle()

    def heard(self) -> None:
        """There is something new in the store."""
        self._news.set()

    # -- reading ----------------------------------------------------------------------------------

    async def _follow(self) -> None:
        try:
            found = await asyncio.to_thread(self._fragment, END)
            self.begins = (await asyncio.to_thread(self._fragment, 0)).first
            await self._append(found)
            self._settle()
            while True:
                await self._news.wait()
                self._news.clear()
                await self._grow()
                await asyncio.sleep(EVERY)
        except WhyforError as error:  # forgotten meanwhile, or the store cannot be read
            self.app.notify(error.message, severity="warning")
            self.dismiss()

    def _fragment(self, at: int) -> PageRange:
        return session_part(
            self.settings, self.card.session.agent, self.card.session.session_id, at
        ).stretch

    async def _grow(self) -> None:
        """What the last page has become, and the pages after it."""
        found = await asyncio.to_thread(self._fragment, self.pages[-1].first if self.pages else END)
        while True:
            if self.pages and self.pages[-1].first == found.first:
                await self._change(self.pages[-1], found)
            else:
                await self._append(found)
            if self.follows:
                await self._forget_early()
            self._settle()
            after = await asyncio.to_thread(self._fragment, found.last + 1)
            if after.first <= found.first:
                return
            found = after

    async def _change(self, page: ConversationPage, stretch: PageRange) -> None:
        known = {(row.item.kind, row.item.seq): row for row in page.rows}
        items = _items(stretch)
        if [key for item in items if (key := (item.kind, item.seq)) in known] != list(known):
            # what was there is told otherwise: calls that became one run
            with self.app.batch_update():
                await self.scroll.remove_children(page.rows)
                self.pages.remove(page)
                await self._append(stretch)
            return
        rows, fresh = [], []
        for item in items:
            row = known.get((item.kind, item.seq))
            if row is None:
                row = ItemRow(item, self.unfolded)
                fresh.append(row)
            elif row.item != item:
                row.tell(item, self.unfolded)
            rows.append(row)
        page.rows, page.last = rows, stretch.last
        if fresh and rows[-len(fresh) :] == fresh:
            await self.scroll.mount_all(fresh, before="#ask")
        elif fresh:
            for at, row in enumerate(rows):
                if row in fresh:
                    await self.scroll.mount(
                        row, **({"after": rows[at - 1]} if at else {"before": rows[1]})
                    )

    async def _append(self, stretch: PageRange) -> None:
        page = ConversationPage(stretch, self.unfolded)
        self.pages.append(page)
        await self.scroll.mount_all(page.rows, before="#ask")
        self._mind_earlier()

    async def _forget_early(self) -> None:
        while len(self.pages) > PAGES:
            await self.scroll.remove_children(self.pages.pop(0).rows)
        self._mind_earlier()

    def _mind_earlier(self) -> None:
        earlier = self.query_one("#earlier", CleanText)
        earlier.display = self._has_earlier()
        earlier.update(
            Text("┄┄ there is more before this: go on up ┄┄", "dim") if self._has_earlier() else ""
        )

    def _has_earlier(self) -> bool:
        return bool(self.pages) and self.pages[0].first > self.begins

    async def _earlier(self, lines: int) -> None:
        """The page before the first; what is on the screen moves by so many lines only."""
        if self._loading:
            return
        self._loading = True
        try:
            stretch = await asyncio.to_thread(self._fragment, self.pages[0].first - 1)
            page = ConversationPage(stretch, self.unfolded)
            before = self.scroll.virtual_size.height - self.scroll.scroll_y
            self.pages.insert(0, page)
            with self.app.batch_update():
                await self.scroll.mount_all(page.rows, after="#earlier")
                self._mind_earlier()
            self.follows = False
            self.call_after_refresh(
                lambda: self._move(self.scroll.virtual_size.height - before - lines)
            )
        finally:
            self._loading = False

    # -- moving -----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """At the end, if it follows; as soon as it is known where that is."""
        if self.follows:
            self.call_after_refresh(self._to_end)

    def _to_end(self) -> None:
        if self.follows:
            self.scroll.scroll_end(animate=False, force=True)

    def _move(self, y: float) -> None:
        self.scroll.scroll_to(y=max(0, y), animate=False, force=True)
        self.follows = y >= self.scroll.max_scroll_y

    async def _up(self, lines: int) -> None:
        if self.scroll.scroll_y < lines and self._has_earlier():
            await self._earlier(lines)
        else:
            self._move(self.scroll.scroll_y - lines)

    def action_down(self) -> None:
        self._move(self.scroll.scroll_y + 1)

    async def action_up(self) -> None:
        await self._up(1)

    async def action_page(self, way: int) -> None:
        lines = max(1, self.scroll.size.height - 2)
        if way < 0:
            await self._up(lines)
        else:
            self._move(self.scroll.scroll_y + lines)

    async def action_first(self) -> None:
        self.follows = False
        if self._has_earlier():
            stretch = await asyncio.to_thread(self._fragment, 0)
            page = ConversationPage(stretch, self.unfolded)
            if page.first < self.pages[0].first:
                with self.app.batch_update():
                    for each in self.pages:
                        await self.scroll.remove_children(each.rows)
                    self.pages = []
                    await self._append(stretch)
        self._move(0)
        self.follows = False
        self._news.set()  # the pages after it follow

    def action_last(self) -> None:
        self.follows = True
        self._settle()

    def action_prompt(self, way: int) -> None:
        here = self.scroll.scroll_y
        places = [
            row.virtual_region.y
            for page in self.pages
            for row in page.rows
            if row.item.kind == "prompt"
        ]
        later = [y for y in places if (y > here if way > 0 else y < here)]
        if later:
            self._move(later[0] if way > 0 else later[-1])

    def action_unfold(self) -> None:
        self.unfolded = not self.unfolded
        with self.app.batch_update():
            for page in self.pages:
                for row in page.rows:
                    row.tell(row.item, self.unfolded)
        self._settle()

    def action_copy(self) -> None:
        command = resume_command(self.card.session)
        if command is None:
            return
        if label(command) != command:  # what is pasted, a shell obeys
            self.app.notify(
                f"Not copied, something is hidden in it: {words.shown_name(command)}",
                severity="warning",
            )
            return
        self.app.copy_to_clipboard(command)
        self.app.notify(words.shown_name(command), title="Copied")


def _items(stretch: PageRange) -> list[Item]:
    return [item for section in stretch.sections for item in section.items]
