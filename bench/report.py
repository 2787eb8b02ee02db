"""Tables with a verdict, for the terminal, as JSON and as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import rich.box
import rich.table
from rich.console import Console

from reasons import REASONS

Cell = str | float | int | None

# a pipe is 80 columns wide to rich, which would fold the wide tables
console = Console(width=max(Console().width, 132))


@dataclass(frozen=True)
class Check:
    """A target: what is measured, the value, and the limit it must keep (a floor where higher is
    better)."""

    name: str
    value: float | None
    limit: float
    unit: str = "×"
    floor: bool = False

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.limit if self.floor else self.value <= self.limit

    @property
    def verdict(self) -> str:
        return {True: "met", False: "MISSED", None: "not measured"}[self.met]

    def row(self) -> list[Cell]:
        sign = "≥" if self.floor else "≤"
        value = "–" if self.value is None else f"{self.value:.3g}{self.unit}"
        return [self.name, value, f"{sign} {self.limit:g}{self.unit}", self.verdict]


@dataclass(frozen=True)
class Table:
    title: str
    columns: list[str]
    rows: list[list[Cell]]
    note: str = ""


@dataclass
class Report:
    """Everything one run found."""

    tables: list[Table] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(self, table: Table, *checks: Check) -> None:
        """Shows a table at once, so that a long run is watched as it goes."""
        self.tables.append(table)
        self.checks.extend(checks)
        show(table)

    def skip(self, what: str) -> None:
        self.skipped.append(what)
        console.print(f"[bold red]SKIPPED[/]: {what}")

    def targets(self) -> Table:
        missed = [check.name for check in self.checks if check.met is False]
        note = "\n".join(
            f"{name}: {REASONS.get(name, 'no reason written down yet.')}" for name in missed
        )
        return Table(
            "Targets",
            ["what", "measured", "target", "verdict"],
            [check.row() for check in self.checks],
            note,
        )

    def as_json(self) -> dict[str, object]:
        checks = [asdict(check) | {"met": check.met} for check in self.checks]
        return {
            **machine(),
            "tables": [asdict(t) for t in self.tables],
            "checks": checks,
            "skipped": self.skipped,
        }

    def as_markdown(self, command: str) -> str:
        skipped = [f"**Skipped**: {what}" for what in self.skipped]
        head = f"# Benchmarks\n\n{_measured(command)}\n"
        return "\n\n".join([head, *skipped, *map(markdown, [self.targets(), *self.tables])]) + "\n"

    def within(self, page: str, command: str, part: str) -> str:
        """The page of a whole run, with this part's tables in the place of those it had."""
        targets = self.targets()
        targets = replace(
            targets, title=f"Targets of {part}", note=f"{_measured(command)}\n{targets.note}"
        )
        tables = [targets, *self.tables]
        titles = tuple(f"{table.title}\n" for table in tables)
        head, *sections = page.rstrip("\n").split("\n## ")
        kept = [section for section in sections if not f"{section}\n".startswith(titles)]
        old = "\n## ".join([head, *kept]).rstrip("\n")
        return "\n\n".join([old, *map(markdown, tables)]) + "\n"


def _measured(command: str) -> str:
    about = machine()
    where = (
        f"{about['cores']} cores, {about['memory_gb']} GB, {about['system']}, Python "
        f"{about['python']}"
    )
    return f"Measured {about['date']} on {where}, by `{command}`."


def machine() -> dict[str, object]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def cell(value: Cell) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if isinstance(value, float) and value < 100 else f"{value:,.0f}"


def show(table: Table) -> None:
    drawn = rich.table.Table(
        title=table.title, box=rich.box.SIMPLE_HEAD, title_justify="left", caption_justify="left"
    )
    drawn.caption = table.note or None
    for index, column in enumerate(table.columns):
        drawn.add_column(column, justify="left" if index == 0 else "right", no_wrap=index == 0)
    for row in table.rows:
        drawn.add_row(*map(cell, row))
    console.print(drawn)


def markdown(table: Table) -> str:
    rows: list[Sequence[str]] = [table.columns, ["---", *["---:"] * (len(table.columns) - 1)]]
    rows += [[cell(value) for value in row] for row in table.rows]
    drawn = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return "\n\n".join(filter(None, [f"## {table.title}", drawn, table.note.replace("\n", "\n\n")]))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
