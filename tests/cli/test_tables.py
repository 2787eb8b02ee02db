"""Tables on terminals of 60, 80 and 120 columns: nothing is wider, and no number, id or only name
is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.cli.tables import AgentCell, FittedTable

Cli = Callable[..., Result]
WIDTHS = (60, 80, 120)
LONG = "/code/a-customer-with-a-long-name/the-service-that-computes-the-invoices-of-last-year"
WIDE = "/code/潮汐観測所の警報システム"
HUGE = 123_456_789_012


@pytest.fixture
def crowded(home: Path, cli: Cli) -> list[Transcript]:
    """Sessions with long names, wide characters, huge numbers, and ids that begin alike."""
    made = []
    for number, cwd in enumerate((LONG, WIDE, "/code/shop")):
        told = Transcript(f"s{number}", cwd=cwd, day=f"2026-05-0{number + 1}")
        told.session_id = f"019d6f23-aaaa-7000-8000-00000000000{number}"
        told.prompt("潮汐 " * 30 if number == 1 else "Please make the checkout faster. " * 4)
        told.block(
            {"type": "text", "text": "Done."},
            output=HUGE + number,
            model="a-model-with-quite-a-long-name-2026-05-01-preview",
        )
        told.save(home)
        made.append(told)
    assert cli("ingest").code == 0
    return made


def _lines(result: Result, width: int) -> str:
    """The output without line breaks and padding, if every line fits."""
    assert result.code == 0, result.err
    for line in result.out.splitlines():
        assert cell_len(line) <= width, line
    return result.out


def _first_column(text: str) -> str:
    """What stands left of two spaces, continued on the next line."""
    return _joined("".join(re.sub(r"\s{2,}.*", "", line) for line in text.splitlines()))


def _joined(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_printed_id_is_whole_and_works_at_every_width(
    crowded: list[Transcript], cli: Cli, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = _lines(cli("sessions"), width)
    ids = re.findall(r"019d6f23\S*", shown)
    assert len(ids) == len(set(ids)) == 3
    for ident in ids:
        assert cli("show", ident, "--json").code == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_stats_keep_every_number_and_every_name(
    crowded: list[Transcript], cli: Cli, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = _lines(cli("stats"), width)
    assert "…" not in shown
    assert shown.count("123 G") >= 3
    assert "370 G" in shown
    names = ("the-service-that-computes-the-invoices-of-last-year", "潮汐観測所の警報システム")
    for name in (*names, "a-model-with-quite-a-long-name-2026-05-01-preview", "ClaudeCode"):
        assert name in _first_column(shown)


@pytest.mark.parametrize("width", WIDTHS)
def test_projects_keep_their_names_paths_and_numbers(
    crowded: list[Transcript], cli: Cli, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = _lines(cli("projects"), width)
    assert "…" not in shown
    for path in (LONG, WIDE):
        assert _first_column(shown).count(path) == 1, "once: it is the project's name"
        assert _joined(shown).count(path[-12:]) == 1


@pytest.mark.parametrize("width", WIDTHS)
def test_doctor_keeps_its_numbers_and_folders(
    crowded: list[Transcript], cli: Cli, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = _lines(cli("doctor"), width)
    assert "…" not in shown
    assert "~/.claude/projects" in _joined(shown)
    assert "Claude Code" in shown
    size = sum(told.path(Path.home()).stat().st_size for told in crowded)
    assert f"{size / 1000:.1f} kB" in shown


@pytest.mark.parametrize("width", WIDTHS)
def test_log_keeps_commits_and_says_which_columns_have_no_room(
    cli: Cli, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = cli("demo", "--keep", "--json").json
    monkeypatch.setenv("HOME", kept["home"])
    monkeypatch.setenv("WHYFOR_HOME", kept["whyfor_home"])
    monkeypatch.chdir(kept["repository"])
    monkeypatch.setenv("COLUMNS", str(width))
    shown = _lines(cli("log"), width)
    for entry in cli("log", "--json").json:
        assert entry["commit"][:8] in shown
    assert ("no room for: turns" in shown) == (width < 120)
    assert ("Cc Claude Code · Cx Codex" in shown) == (width < 120)
    assert ("evidence" in shown.splitlines()[0]) == (width > 60)


def _printed(table: FittedTable, width: int) -> list[str]:
    from rich.console import Console

    out = Console(width=width, color_system=None)
    with out.capture() as captured:
        table.print(out)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_agents_are_written_out_where_there_is_room_and_explained_where_not() -> None:
    table = FittedTable("agent", "title", title="title")
    table.add(AgentCell("claude", "codex"), "A title of more than forty characters, to be long")
    assert _printed(table, 80)[1].startswith("Claude Code, Codex  A title")
    narrow = _printed(table, 40)
    assert narrow[1].startswith("Cc Cx  A title")
    assert narrow[-1] == "Cc Claude Code · Cx Codex"


def test_a_column_without_room_moves_below_the_title() -> None:
    headings = ("name", "in", "out")
    table = FittedTable(*headings, title="name", right=("in", "out"), fold=("in",), wrap=True)
    table.add("a-project-with-a-long-name", "1,234,567,890", "9,876,543,210")
    assert _printed(table, 60)[1].split() == [
        "a-project-with-a-long-name",
        "1,234,567,890",
        "9,876,543,210",
    ]
    folded = " ".join(_printed(table, 40)).split()
    assert folded[:2] == ["name", "out"]
    assert {"in", "1,234,567,890", "9,876,543,210"} <= set(folded)


def test_a_table_that_names_nothing_to_fold_cuts_no_number_either() -> None:
    table = FittedTable("asked", "id", "action", "by", "after", title="action")
    table.add("2026-06-25 01:50", "b166df6d", "Run the tests", "you, terminal", "≤ 45 min 22 s")
    told = _printed(table, 44)
    assert max(map(len, told)) <= 44
    assert told[1].split()[:3] == ["2026-06-25", "01:50", "b166df6d"]
    assert "by you, terminal · after ≤ 45 min 22 s" in " ".join(" ".join(told).split())


def test_what_would_act_on_a_terminal_is_shown_by_number_in_a_cell() -> None:
    table = FittedTable("name", title="name", wrap=True)
    table.add("evil\x1b[2J\nname")
    assert "\x1b" not in "".join(_printed(table, 60))
    assert len(_printed(table, 60)) == 2


@pytest.mark.parametrize("width", [40, 80])
def test_every_row_is_as_wide_as_its_headings(width: int) -> None:
    headings = ("agent", "title", "turns", "when")
    table = FittedTable(*headings, title="title", right=("turns",), drop=("when",))
    table.add(AgentCell("claude"), Text("潮汐 " * 30, style="bold"), "7", "2 h")
    table.add(AgentCell("codex", "gemini"), "Two\nlines\x1b[31m", "1,234", "")
    table.add(AgentCell(), "", "", "")
    told = _printed(table, width)
    assert all(width - 1 <= cell_len(line) <= width for line in told[:2])
    assert told[1].endswith("  2 h") and "…" in told[1]
    assert told[2].endswith("1,234")
    assert "Two lines" in told[2] and "\x1b" not in told[2]


_FOLDED = ("id", "title", "project", "branch")
_LONG = "Say how old a tide table is, in the output and the log"


def test_facts_below_a_title_have_the_whole_width_and_begin_at_one_place() -> None:
    table = FittedTable(*_FOLDED, title="title", fold=("project", "branch"))
    table.add("3f05a2c1", _LONG, "a" * 8, "fix/fetch-times")
    table.add("019d6f23", "Count", "harbour-of-the-north", "main")
    told = _printed(table, 44)
    assert told[2].strip() == f"project {'a' * 8} · branch fix/fetch-times"
    assert told[4].strip() == "project harbour-of-the-north · branch main"
    assert told[2].index("project") == told[4].index("project")
    assert max(map(len, told)) <= 44


def test_facts_that_need_two_lines_are_parted_between_facts() -> None:
    table = FittedTable(*_FOLDED, title="title", fold=("project", "branch"))
    table.add("3f05a2c1", _LONG, "b" * 24, "fix/fetch-times")
    told = _printed(table, 44)
    assert [line.strip() for line in told[2:]] == [f"project {'b' * 24}", "branch fix/fetch-times"]


def test_a_title_that_goes_on_does_so_below_itself() -> None:
    table = FittedTable("id", "title", "turns", title="title", right=("turns",), wrap=True)
    table.add("3f05a2c1", "One two three four five six seven eight", "1,204")
    told = _printed(table, 40)
    assert told[1].endswith("1,204")
    assert " ".join(line[10:33].strip() for line in told[1:]) == (
        "One two three four five six seven eight"
    )
