"""The house rules that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tests.conftest import REPOSITORY

BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["lint-imports"], ["mypy"]],
    ids=lambda command: "-".join(command[:2]),
)
def test_the_linters_have_nothing_to_say(command: list[str]) -> None:
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _tracked() -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return [REPOSITORY / name for name in done.stdout.splitlines()]


def test_no_file_names_where_packages_were_downloaded_from() -> None:
    pattern = re.compile(r"\"resolved\": \"http|--(?:extra-)?index-url|registry\s*=\s*\"?http")
    guilty = [
        p
        for p in _tracked()
        if p.is_file() and p != Path(__file__) and pattern.search(p.read_text(errors="ignore"))
    ]
    assert guilty == []


def test_no_file_holds_the_marks_of_a_merge() -> None:
    mark = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
    assert mark.search("a\n" + "<" * 7 + " HEAD\n")
    torn = [p for p in _tracked() if p.is_file() and mark.search(p.read_text(errors="ignore"))]
    assert torn == []


def test_a_room_says_what_lives_there() -> None:
    silent = [
        path
        for path in (REPOSITORY / "src" / "whyfor").rglob("*.py")
        if not path.read_text(encoding="utf-8").startswith('"""')
    ]
    assert silent == []


# Names that are the same thing in every module that has one.
_ONE_MEANING = {
    "main": "where a program begins",
    "stamp": "what an agent says of a record: one in each agent's package",
    "own_folder": "where an agent keeps its sessions: one in each agent's package",
}


def test_no_public_name_means_two_things() -> None:
    """A stranger who greps for a name finds one class or function. Commands and routes are called
    by their path, and hooks, which import nothing of ours, have a world of their own."""
    source = REPOSITORY / "src" / "whyfor"
    places: dict[str, list[str]] = {}
    for path in source.rglob("*.py"):
        place = path.relative_to(source).as_posix()
        if place.startswith("hook/"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("_") and not _is_route(node):
                places.setdefault(node.name, []).append(place)
    doubled = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: doubled[name] for name in doubled.keys() - _ONE_MEANING.keys()} == {}
    assert doubled.keys() >= {"stamp"}


def _is_route(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is registered by a decorator, as click's commands and Litestar's routes are."""
    return any(isinstance(decorator, ast.Call) for decorator in node.decorator_list)


_SQL_ROOMS = (
    "store/postgres/",
    "store/sql/",
    "store/sqlite/",
    "locks.py",
    "agents/opencode/",
    "agents/databases/",
)
_SQL = re.compile(
    r"\bSELECT\b.+\bFROM\b|\bINSERT\b.+\bINTO\b|\bUPDATE\b.+\bSET\b|\bDELETE FROM\b|^\s*PRAGMA\b",
    re.DOTALL,
)


def test_only_the_store_speaks_sql() -> None:
    source = REPOSITORY / "src" / "whyfor"
    guilty = []
    for path in source.rglob("*.py"):
        place = path.relative_to(source).as_posix()
        if place.startswith(_SQL_ROOMS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                guilty += [f"{place}:{node.lineno}"] if _SQL.search(node.value) else []
    assert guilty == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports inside functions count too."""
    graph = grimp.build_graph("whyfor", cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imported) > 300
    # Take away what imports nothing that is left, until nothing changes: cycles stay.
    left = dict(imported)
    while leaves := [module for module in left if not (left[module] & left.keys())]:
        for module in leaves:
            del left[module]
    assert sorted(left) == []
