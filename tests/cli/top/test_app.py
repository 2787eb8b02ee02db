"""Now in the terminal: what it shows, its keys, and that it changes without disturbing whoever
is at it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from tests.pages.hostile import HOSTILE
from tests.pages.sessions import asking, now, standing
from tests.transcripts import Transcript
from whyfor.cli.screen import app as screen_app
from whyfor.config import Settings
from whyfor.model.attention import Concern, Firing
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.service.forget import ForgetArguments, forget
from whyfor.service.ingest import ingest
from whyfor.store.open import reading

from .conftest import Screen, shown

COMMAND = (
    'psql -c "ALTER TABLE charges ADD COLUMN key text" \\\n  && '
    + "echo done; " * 40
    + "rm -rf ./build"
)


def on_screen(
    settings: Settings, act: Callable[[Screen], Awaitable[None]], columns: int = 80, rows: int = 24
) -> None:
    async def whole() -> None:
        async with shown(settings, columns, rows) as screen:
            await act(screen)

    asyncio.run(whole())


def ingested(settings: Settings) -> Session:
    ingest(settings)
    with reading(settings) as library:
        return library.sessions.matching(Filters(), limit=1, subagents=False)[0]


def squeezed(text: str) -> str:
    return re.sub(r"[\s█]", "", text)


# -- what it shows -------------------------------------------------------------------------------


def test_sessions_stand_in_groups_with_approvals_first(settings: Settings) -> None:
    async def act(screen: Screen) -> None:
        screen.app.stand(
            [
                standing("rests", "idle"),
                standing("runs", "running", status={"activity": "Bash: make test"}),
                standing("waits", "waiting"),
                asking("asked late", "ls", status={"since": now() - 5_000}),
                asking("asked early", "pwd", status={"since": now() - 500_000}),
            ]
        )
        await screen.see("Idle and ended")
        lines = screen.lines
        assert lines[0].startswith(
            " 2 need approval, 1 waits for you, 1 is running. 5 open sessions"
        )
        found = [line.strip("█ ").split("  ")[0] for line in lines]
        order = [
            "◆ Needs approval",
            "Cc asked early",
            "Cc asked late",
            "■ Waiting for you",
            "Cc waits",
            "● Running",
        ]
        assert [line for line in found if line in order] == order
        assert any("Bash make test" in line for line in lines)
        assert "8 min" in screen.text and "checkout  main" in screen.text

    on_screen(settings, act, 80, 40)


def test_what_needs_a_person_stands_above_the_sessions(settings: Settings) -> None:
    def firing(cause: str, fact: str, *, muted: bool = False) -> Firing:
        found = Concern(cause=cause, key="1", at=now(), fact=fact, evidence="e", step="s")
        return Firing(agent="claude", session_id="runs", found=found, told_at=now(), muted=muted)

    async def act(screen: Screen) -> None:
        screen.app.stand([standing("runs", "running")])
        told = [firing("wall", "\x1b[2Jrm: refused."), firing("done", "quiet", muted=True)]
        screen.app.attend(told, [])
        await screen.see("Blocked")
        assert any("▲ Blocked  runs" in line and "rm: refused." in line for line in screen.lines)
        assert not any("Finished" in line for line in screen.lines)
        screen.app.attend([], [])
        await screen.see("Running")

    on_screen(settings, act)


@pytest.mark.parametrize("columns", [80, 40, 24])
def test_a_command_is_shown_whole_however_narrow_it_is(settings: Settings, columns: int) -> None:
    async def act(screen: Screen) -> None:
        screen.app.stand([asking("asks", COMMAND)])
        await screen.see("Wants to run")
        assert squeezed(COMMAND) in squeezed(screen.text)
        assert all(len(line) <= columns for line in screen.lines)

    on_screen(settings, act, columns, 80)


def test_what_is_taller_than_the_screen_is_read_to_its_end(settings: Settings) -> None:
    async def act(screen: Screen) -> None:
        screen.app.stand(
            [
                asking("asks", "\n".join(f"line-{n};" for n in range(60))),
                standing("waits", "waiting"),
            ]
        )
        await screen.see("line-3;")
        seen = set()
        for _ in range(12):
            seen |= set(re.findall(r"line-(\d+);", screen.text))
            if screen.app.chosen == "claude:waits":
                break
            await screen.press("j")
        assert seen == {str(n) for n in range(60)}
        assert screen.app.chosen == "claude:waits"
        for _ in range(12):
            await screen.press("k")
        assert "Needs approval" in screen.text and screen.app.chosen == "claude:asks"

    on_screen(settings, act)


def test_nothing_in_a_command_is_invisible(settings: Settings) -> None:
    async def act(screen: Screen) -> None:
        screen.app.stand(
            [asking("asks", "echo ok\u202e #hidden\u200b\x1b[8m\x00; rm -rf /\ue000\u00a0\u2028")]
        )
        await screen.see("rm -rf")
        for name in ("202E", "200B", "001B", "0000", "E000", "00A0", "2028"):
            assert f"<U+{name}>" in squeezed(screen.text)

    on_screen(settings, act)


@pytest.mark.parametrize(
    "hostile", [*HOSTILE, "[bold red]x[/] [@click=app.quit]y[/] [/nothing] \\[", "\udcff\ud800"]
)
def test_hostile_words_are_words(settings: Settings, hostile: str) -> None:
    async def act(screen: Screen) -> None:
        status = {"activity": f"Bash: {hostile}"}
        screen.app.stand(
            [
                asking(
                    hostile, hostile, tool=hostile, branch=hostile, project=hostile, cwd=hostile
                ),
                standing("2", "running", status=status, title=hostile, models=[hostile]),
                standing(
                    "3",
                    "waiting",
                    status={"questions": [hostile], "failed": hostile},
                    title=hostile,
                ),
                standing("4", "idle", status={"failed": hostile}, title=hostile),
            ]
        )
        await screen.see("Idle and ended")
        await screen.press("j", "slash", "x", "escape", "question_mark", "escape")
        shown_ = screen.text
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown_)
        if hostile.startswith("[bold red]"):
            assert hostile.split(" [/nothing]")[0] in shown_

    on_screen(settings, act, 80, 200)


def test_an_empty_home_says_what_to_do(settings: Settings) -> None:
    async def act(screen: Screen) -> None:
        await screen.see("whyfor init")

    on_screen(settings, act)
    assert not settings.home.exists()


def test_what_is_kept_is_shown_before_anybody_reads(
    settings: Settings, kept: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(settings)
    monkeypatch.setattr(screen_app, "follow", lambda *_: None)  # busy with other files

    async def whole() -> None:
        app = screen_app.Top(settings)
        async with app.run_test(size=(80, 24)) as pilot:
            screen = Screen(app, pilot)
            await screen.see("Count the quokkas")
            assert "No session is open" not in screen.text

    asyncio.run(whole())


# -- it changes ----------------------------------------------------------------------------------


def test_a_change_is_shown_and_the_choice_stays(settings: Settings) -> None:
    together = {"since": now() - 60_000}  # what began later stands above

    async def act(screen: Screen) -> None:
        screen.app.stand([standing(name, "running", status=together) for name in "abc"])
        await screen.see("3 are running")
        await screen.press("j")
        assert screen.chosen == "b"
        screen.app._touched = 0.0
        screen.app.stand([standing("a", "running"), asking("b", "make"), standing("c", "waiting")])
        await screen.see("Needs approval")
        assert screen.chosen == "b"
        assert screen.lines[0].startswith(" 1 needs approval, 1 waits for you, 1 is running.")
        screen.app.stand([standing("a", "running")])
        await screen.until(lambda: "Needs approval" not in screen.text)
        assert screen.chosen == "a"

    on_screen(settings, act, 80, 40)


def test_nothing_moves_right_after_a_key(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen_app, "STILL", 0.5)

    async def act(screen: Screen) -> None:
        screen.app.stand([standing("a", "running"), standing("b", "running")])
        await screen.see("2 are running")
        await screen.press("j")
        screen.app.stand([standing("a", "running"), asking("b", "make")])
        await screen.see("1 needs approval")  # in the first line at once
        assert "◆" not in screen.text
        await screen.see("◆ Needs approval")

    on_screen(settings, act)


def test_what_did_not_change_is_not_drawn_again(settings: Settings) -> None:
    async def act(screen: Screen) -> None:
        long = now() - 300_000
        still = [
            standing("a", "waiting", status={"since": long}),
            standing("b", "exited", status={"heard_at": long}),
        ]
        screen.app.stand(still)
        await screen.see("Waiting for you  1")
        rows = list(screen.app.rows.values())
        drawn = []
        for row in rows:
            row.update = lambda *given, **more: drawn.append(given)  # type: ignore[method-assign]
        screen.app.stand(still)
        await screen.pilot.pause(0.3)
        screen.app._tick()
        assert list(screen.app.rows.values()) == rows
        assert drawn == []

    on_screen(settings, act)


# -- keys ----------------------------------------------------------------------------------------


def test_a_filter_leaves_what_fits(settings: Settings) -> None:
    async def act(screen: Screen) -> None:
        screen.app.stand(
            [standing("apples", "running"), standing("pears", "running", branch="orchard")]
        )
        await screen.see("pears")
        await screen.press("slash", *"ORCHARD")
        await screen.until(lambda: "apples" not in screen.text)
        assert "pears" in screen.text and "ORCHARD" in screen.text
        await screen.press("enter", "k", "j")
        assert screen.chosen == "pears"
        await screen.press("slash", *"xyz")
        await screen.see("No session fits")
        await screen.press("escape")
        await screen.see("apples")

    on_screen(settings, act)


def test_the_sheet_lists_every_key(settings: Settings) -> None:
    async def act(screen: Screen) -> None:
        await screen.press("question_mark")
        await screen.see("open the session")
        for keys, _ in screen_app.KEYS:
            assert keys in screen.text
        await screen.press("question_mark")
        await screen.until(lambda: "open the session" not in screen.text)

    on_screen(settings, act)


def test_q_quits(settings: Settings) -> None:
    async def act(screen: Screen) -> None:
        await screen.press("q")
        await screen.until(lambda: not screen.app.is_running)

    on_screen(settings, act)


# -- a session -----------------------------------------------------------------------------------


def test_enter_opens_the_conversation_and_it_grows(
    settings: Settings, home: Path, kept: Transcript
) -> None:
    session = ingested(settings)

    async def act(screen: Screen) -> None:
        running = msgspec.structs.replace(standing("x", "running"), session=session)
        screen.app.stand([running])
        await screen.see("Count the quokkas")
        await screen.press("enter")
        await screen.see("There are two quokkas.")
        assert "Bash  ls quokkas" in screen.text
        assert screen.app._looked_at() == (f"claude:{session.session_id}",)
        kept.prompt("And wombats?")
        kept.say("\n\n".join(f"wombat {n}" for n in range(40)))
        kept.save(home)
        ingest(settings)
        screen.app.heard()
        await screen.see("wombat 39")  # it follows
        await screen.press("g")
        await screen.see("Count the quokkas")
        assert "wombat 39" not in screen.text
        kept.say("One more thing")
        kept.save(home)
        ingest(settings)
        screen.app.heard()
        await screen.pilot.pause(0.5)
        assert "One more thing" not in screen.text, "whoever reads is not moved"
        await screen.press("G")
        await screen.see("One more thing")
        await screen.press("p")
        await screen.see("And wombats?")
        asked = msgspec.structs.replace(asking("x", COMMAND), session=session)
        screen.app._touched = 0.0
        screen.app.stand([asked])
        await screen.press("G")
        await screen.see("rm -rf ./build")
        await screen.press("escape")
        await screen.see("1 needs approval")
        assert screen.app._looked_at() == ()

    on_screen(settings, act)


def test_a_long_conversation_is_read_back_page_by_page(
    settings: Settings, home: Path, kept: Transcript
) -> None:
    for number in range(120):
        kept.prompt(f"Question {number}")
        kept.say(f"Answer {number}")
    kept.save(home)
    session = ingested(settings)

    async def act(screen: Screen) -> None:
        screen.app.stand([msgspec.structs.replace(standing("x", "waiting"), session=session)])
        await screen.see("quokkas")
        await screen.press("enter")
        await screen.see("Answer 119")
        seen: set[int] = set()
        for _ in range(400):
            seen |= {int(found) for found in re.findall(r"Answer (\d+)", screen.text)}
            if "two quokkas" in screen.text:
                break
            await screen.press("b")
            await screen.pilot.pause()
        assert seen == set(range(120)), "every answer was on the screen once"

    on_screen(settings, act, 80, 40)


def test_a_conversation_of_hostile_words_is_words(
    settings: Settings, home: Path, kept: Transcript
) -> None:
    for hostile in [*HOSTILE, "[bold]x[/] [/nothing] [@click=app.quit]"]:
        kept.prompt(hostile)
        kept.say(hostile)
        kept.think(hostile)
        kept.call("Bash", {"command": hostile}, hostile, failed=True)
    kept.save(home)
    session = ingested(settings)

    async def act(screen: Screen) -> None:
        screen.app.stand([msgspec.structs.replace(standing("x", "waiting"), session=session)])
        await screen.see("1 waits for you")
        await screen.press("enter")
        await screen.see("[/nothing]")
        for keys in ("e", "e", "g", "n", "G"):
            await screen.press(keys)
            await screen.pilot.pause(0.05)
            assert not re.search(
                r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", screen.text
            )

    on_screen(settings, act)


def test_a_session_forgotten_meanwhile_is_left(settings: Settings, kept: Transcript) -> None:
    session = ingested(settings)

    async def act(screen: Screen) -> None:
        screen.app.stand([msgspec.structs.replace(standing("x", "waiting"), session=session)])
        await screen.see("Count the quokkas")
        await screen.press("enter")
        await screen.see("two quokkas")
        forget(settings, Path.cwd(), ForgetArguments(reference=session.session_id))
        screen.app.heard()
        await screen.until(lambda: len(screen.app.screen_stack) == 1)

    on_screen(settings, act)
