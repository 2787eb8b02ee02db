"""Fixtures for tests of `whyfor top`: sessions that are kept, and the app without anybody who
watches."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.transcripts import Transcript
from whyfor.cli.screen.app import Top
from whyfor.config import Settings

SECONDS = 20.0


class Screen:
    """What is on the terminal, and keys to press."""

    def __init__(self, app: Top, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def lines(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, self.text
            await self.pilot.pause(0.02)

    async def see(self, words: str) -> None:
        await self.until(lambda: words in self.text)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    @property
    def chosen(self) -> str:
        """The title of the chosen session: the first line with an edge beside it."""
        return (
            next(line for line in self.lines if line.startswith("█"))[4:].rsplit("  ", 1)[0].strip()
        )


@asynccontextmanager
async def shown(settings: Settings, columns: int = 80, rows: int = 24) -> AsyncIterator[Screen]:
    app = Top(settings, watching=False)
    async with app.run_test(size=(columns, rows)) as pilot:
        yield Screen(app, pilot)


@pytest.fixture
def kept(home: Path) -> Transcript:
    """A session of today in the agent's folder; not ingested yet."""
    transcript = Transcript("quokka", live=True)
    transcript.prompt("Count the quokkas")
    transcript.call("Bash", {"command": "ls quokkas"}, "one\ntwo")
    transcript.say("There are *two* quokkas.")
    transcript.save(home)
    return transcript
