"""Recorded terminals: what the reader makes of asciicast v3, ours and others'."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path
from typing import Any

from tests.capture.snapshot import assert_equal, derived
from tests.conftest import REPOSITORY
from whyfor.agents import AGENTS
from whyfor.agents.terminal.cast import TerminalSize, cast_event, header_time, resized
from whyfor.agents.terminal.screen import ScreenState, render_screen
from whyfor.config import Settings
from whyfor.model.casts import CAST
from whyfor.model.terminal_output import PlayableText
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.store.open import reading

ID = "5e55000000000000000000000000cafe"
HEADER = {
    "version": 3,
    "term": {"cols": 60, "rows": 10, "type": "xterm"},
    "timestamp": 1_790_000_000,
    "command": "quill --fast",
    "whyfor": {"session": ID, "cwd": "/home/ada/shop", "version": "1", "input": False},
}


def cast(*events: list[Any], header: dict[str, Any] = HEADER) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in (header, *events))


def write(settings: Settings, content: bytes, name: str = f"{ID}.cast") -> Path:
    folder = settings.home / "recordings"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def events(settings: Settings) -> list[tuple[str, str, str, str]]:
    with reading(settings) as library:
        session = library.sessions.find(ID, "terminal")
        found = library.conversation.events(session.id)
        return [(e.kind, e.source, e.confidence, e.text) for e in found]


TALK = (
    [0.1, "o", "quill 1.0\r\n\x1b[32mquill>\x1b[0m "],
    [2.1, "m", "idle"],
    [1.0, "o", "fix the \x08\x1b[C"],
    [0.1, "o", "door\r\nLooking at do"],
    [0.2, "o", "or.py\r\nDone.\r\nquill> "],
    [3.0, "m", "idle"],
    [0.5, "x", "0"],
)


def test_a_recording_is_a_session_with_what_the_screen_showed(settings: Settings) -> None:
    write(settings, cast(*TALK))
    ingest(settings)
    found = events(settings)
    assert {(source, sure) for _, source, sure, _ in found} == {("pty", "low")}
    said = [text for kind, _, _, text in found if kind == "assistant.message"]
    assert said[0] == "```\nquill 1.0\nquill>\n```"
    assert "Looking at door.py\nDone." in said[1]
    assert "\x1b" not in "".join(said)
    assert [text for kind, _, _, text in found if kind == "user.prompt"] == ["fix the door"]
    kinds = [kind for kind, *_ in found]
    assert kinds[0] == "session.started" and kinds[-1] == "session.exited"
    assert kinds.count("heartbeat") == 2
    with reading(settings) as library:
        session = library.sessions.find(ID, "terminal")
        assert (session.title, session.cwd) == ("quill --fast", "/home/ada/shop")
        assert session.started_at == 1_790_000_000_000
        assert session.unparsed == 0


def test_read_at_any_moment_is_read_whole_and_rebuilt_the_same(settings: Settings) -> None:
    content = cast(*TALK)
    path = write(settings, b"")
    for end in range(0, len(content), 37):
        path.write_bytes(content[:end])
        ingest(settings)
    path.write_bytes(content)
    ingest(settings)
    pieces = events(settings)
    before = derived(settings)
    rebuild(settings)
    assert_equal(derived(settings), before)
    assert [kind for kind, *_ in pieces].count("user.prompt") == 1


def test_a_stored_recording_is_deleted_from_disk_and_stays_a_session(settings: Settings) -> None:
    path = write(settings, cast(*TALK))
    ingest(settings)
    assert path.exists()
    ingest(settings)
    assert not path.exists()
    ingest(settings)
    assert events(settings)[-1][0] == "session.exited"


def test_a_recording_of_another_program_is_read_too(settings: Settings, tmp_path: Path) -> None:
    foreign = {"version": 3, "term": {"cols": 80, "rows": 24}}
    path = tmp_path / "demo.cast"
    path.write_bytes(cast([0.5, "o", "hello\r\n"], [9.0, "o", "bye\r\n"], header=foreign))
    ingest(settings, [path])
    with reading(settings) as library:
        session = library.sessions.find("cast-", "terminal")
        found = list(library.conversation.events(session.id))
    assert session.session_id.startswith("cast-")
    assert [e.text for e in found if e.kind == "assistant.message"] == ["```\nhello\n```"]
    assert {e.created_at for e in found} == {None}


def test_version_2_counts_time_from_the_beginning(settings: Settings) -> None:
    older = {"version": 2, "width": 60, "height": 10, "timestamp": 1_790_000_000}
    content = cast([0.5, "o", "one\r\n"], [7.5, "o", "two\r\n"], header=older)
    path = write(settings, content, "older.cast")
    ingest(settings, [path])
    with reading(settings) as library:
        found = list(library.conversation.events(library.sessions.find("cast-", "terminal").id))
    beats = [e.created_at for e in found if e.kind == "heartbeat"]
    assert beats == [1_790_000_000_500, 1_790_000_007_500]


def test_the_usual_screen_comes_back_after_the_alternate_one(settings: Settings) -> None:
    shown = (
        [0.1, "o", "first\r\n\x1b[?1049h\x1b[2J\x1b[2;3Hmenu"],
        [3.0, "m", "idle"],
        [0.1, "o", "\x1b[?1049lsecond\r\n"],
        [3.0, "x", "0"],
    )
    write(settings, cast(*shown))
    ingest(settings)
    said = [text for kind, *_, text in events(settings) if kind == "assistant.message"]
    assert said == ["```\n  menu\n```", "```\nfirst\nsecond\n```"]


def test_what_a_terminal_is_asked_is_not_on_the_screen() -> None:
    cases = {
        "vim\x1b[?4m\x1b[>4;2m\x1b[?12h": ["vim"],  # asked for a mode
        "one\x1b]0;title\x07\x1bP+q544e\x1b\\\x1b_Gi=1;AAAA\x1b\\ two": ["one two"],
        "\x1b[38:2::1:2:3mred\x1b[0 q\x1b[!p\x1b(B": ["red"],
        "a\x1b[5;6Cb\x1b[9J\x1b[7K\x1b[?2;3L": ["ab"],
        "中文\x1b[1;2Hx": ["中x文"],  # half of a wide character is overwritten
        "broken\x1b[?1\x1b[12\x1b": ["broken"],
        "1\x9b4;1H2\x1b[1A3": ["1", "", " 3", "2"],
    }
    for text, shown in cases.items():
        assert render_screen(ScreenState(), TerminalSize(20, 5), text).shown == shown, text


def test_no_output_is_too_odd_to_be_drawn() -> None:
    chosen = random.Random(15)
    final = string.ascii_letters + "@`[]\\^_{|}~"
    odd = "0123456789;:?<=>!$ '\"*\x07\x9b\x9c\x90\x9d\r\n\t\x08\x0e中é\u0301" + final
    for _ in range(150):
        begins = chosen.choices(("\x1b[", "\x1b", "\x1b[?", "", ""), k=60)
        text = "".join(begin + "".join(chosen.choices(odd, k=5)) for begin in begins)
        size = TerminalSize(chosen.choice((1, 2, 80)), chosen.choice((1, 2, 24)))
        render_screen(ScreenState(["a", "中"], (1, 1)), size, text)


def test_typed_lines_are_prompts_where_they_were_recorded(settings: Settings) -> None:
    own = {**HEADER["whyfor"], "input": True}  # type: ignore[dict-item]
    keys = [[0.1, "i", key] for key in ("fi", "x\x7f", "X\x1b[A it", "\r", "\r")]
    write(settings, cast(*keys, [0.1, "x", "0"], header={**HEADER, "whyfor": own}))
    ingest(settings)
    assert [text for kind, *_, text in events(settings) if kind == "user.prompt"] == ["fiX it"]


def test_odd_values_never_raise() -> None:
    agent = AGENTS["terminal"]
    values: tuple[Any, ...] = (
        None,
        True,
        -1,
        1e300,
        2**70,
        "",
        [],
        {},
        "x",
        "9x",
        "0x0",
        "99999x2",
    )
    for odd in values:
        assert cast_event({CAST: [odd, "o", "x"]}) is None or isinstance(odd, int | float)
        assert header_time({"timestamp": odd}) is None or isinstance(odd, int | float)
        assert resized(str(odd)).columns > 0
        agent.stamp({"version": 3, "whyfor": odd, "timestamp": odd})
        agent.sniff(Path("a.cast"), json.dumps({"version": 3, "term": odd}).encode())


def test_what_is_played_moves_and_colours_and_nothing_else() -> None:
    cases = {
        "\x1b[31mred\x1b[0m\r\n": "\x1b[31mred\x1b[0m\r\n",
        "\x1b]0;title\x07a\x1b]52;c;aGk=\x1b\\b": "ab",
        "\x1b[6n\x1b[c\x1b[>c\x1b[21t\x05\x1bZ": "",
        "\x1b[?1049h\x1b[?1000h\x1b[?2004h\x1b[?25l": "\x1b[?1049h\x1b[?25l",
        "\x1bP+q544e\x1b\\x\x9b31m": "x31m",
        "\x1b[2 qy\x07": "y",
    }
    for given, kept in cases.items():
        assert PlayableText().clean(given) == kept, given
        for cut in range(len(given)):
            pieces = PlayableText()
            assert pieces.clean(given[:cut]) + pieces.clean(given[cut:]) == kept, (given, cut)


def test_after_it_was_played_a_terminal_is_as_a_shell_expects_it() -> None:
    played = PlayableText()
    played.clean("\x1b[?1049hmenu")
    assert played.ending.startswith("\x1b[?1049l\x1b7")
    played.clean("\x1b[?10")
    played.clean("49l$ ")
    assert "1049" not in played.ending and played.ending.endswith("\r\n")


def test_no_script_of_the_player_comes_from_elsewhere() -> None:
    static = REPOSITORY / "src" / "whyfor" / "web" / "static"
    for name in ("player.js", "screen.js"):
        assert "http" not in (static / name).read_text()
