"""What programs read stays as it is: the fields of --json, of the API, of the stream, of an export.

tests/wire.json holds them. A new field is added to it by deleting the file and running this
test twice; a field that goes away or changes its type breaks somebody's program.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import REPOSITORY, Result
from whyfor import config
from whyfor.model import wire
from whyfor.server.app import create_app

SNAPSHOT = REPOSITORY / "tests" / "wire.json"
BY_DATA = {"data", "tools", "kinds", "counts", "values"}  # objects whose keys are not ours
Cli = Callable[..., Result]


def test_the_fields_programs_read_are_the_ones_we_promised(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = _commands(cli, tmp_path, monkeypatch)
    found = {"api": _api(), "structs": _structs(), "commands": commands}
    if not SNAPSHOT.exists():
        SNAPSHOT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        pytest.fail(f"wrote {SNAPSHOT.name}; look at what changed, and run again")
    promised = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    for part in found:
        assert sorted(found[part]) == sorted(promised[part])
        for name, shape in found[part].items():
            assert _admits(promised[part][name], shape), (
                f"{part}: {name}\n{json.dumps(shape)}\nis not\n{json.dumps(promised[part][name])}"
            )


def _admits(promised: Any, found: Any) -> bool:
    """Whether a shape keeps a promise: where one of several is promised, any of them does.

    Which of them the demo shows depends on the data (a day on which only one agent ran has no
    count of cache writes), and so on the hour at which the test runs.
    """
    if isinstance(promised, dict) and "one of" in promised:
        several = isinstance(found, dict) and "one of" in found
        shapes = found["one of"] if several else [found]
        return all(any(_admits(each, shape) for each in promised["one of"]) for shape in shapes)
    if isinstance(promised, dict) and isinstance(found, dict):
        same_names = sorted(promised) == sorted(found)
        return same_names and all(_admits(promised[name], found[name]) for name in promised)
    if isinstance(promised, list) and isinstance(found, list):
        same_length = len(promised) == len(found)
        return same_length and all(map(_admits, promised, found))
    return bool(promised == found)


# -- the API, and all structs ----------------------------------------------------------------------


def _api() -> dict[str, Any]:
    """By route: its parameters, and the answer with every reference in its place."""
    document = create_app(config.load(), port=1).openapi_schema.to_schema()
    known = document["components"]["schemas"]
    found = {}
    for path, item in document["paths"].items():
        parameters = item["get"].get("parameters", [])
        asked = {each["name"]: each.get("required", False) for each in parameters}
        body = item["get"]["responses"]["200"].get("content", {})
        answer = {kind: _fields(each["schema"], known) for kind, each in body.items()}
        found[path] = {"parameters": asked, "answer": answer}
    return found


def _structs() -> dict[str, Any]:
    """By name: every struct of model/wire, those of the stream among them."""
    found = {}
    for module in pkgutil.iter_modules(wire.__path__, f"{wire.__name__}."):
        for struct in vars(importlib.import_module(module.name)).values():
            if _is_shape(struct, module.name):
                (body,), known = msgspec.json.schema_components([struct])
                found[struct.__name__] = _fields(body, known)
    return found


def _is_shape(value: Any, module: str) -> bool:
    if not isinstance(value, type) or not issubclass(value, msgspec.Struct):
        return False
    return value.__module__ == module and not getattr(value, "__parameters__", ())


def _fields(schema: dict[str, Any], known: dict[str, Any]) -> Any:
    """A schema without its words and names: the fields, their types, and which are always there."""
    if "$ref" in schema:
        return _fields(known[schema["$ref"].rsplit("/", 1)[1]], known)
    kept = ("type", "const", "required")
    found: dict[str, Any] = {name: schema[name] for name in kept if name in schema}
    if isinstance(found.get("required"), list):
        found["required"] = sorted(found["required"])
    for name in ("anyOf", "oneOf"):
        if name in schema:
            found[name] = [_fields(each, known) for each in schema[name]]
    if "properties" in schema:
        properties = schema["properties"].items()
        found["properties"] = {name: _fields(each, known) for name, each in properties}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found[name] = _fields(schema[name], known)
    return found


# -- the commands --------------------------------------------------------------------------------


def _commands(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """By command line: the shape of what it prints about the demo."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    demo = cli("demo", "--keep", "--json").json
    monkeypatch.setenv("HOME", demo["home"])
    monkeypatch.setenv("WHYFOR_HOME", demo["whyfor_home"])
    monkeypatch.chdir(demo["repository"])
    session = next(each["session_id"] for each in demo["sessions"] if each["tool_calls"] > 5)
    found = {"demo": _shape(demo)}

    def ask(label: str, *arguments: str) -> None:
        printed = cli(*arguments)
        assert printed.code in (0, 1), printed.err
        found[label] = _shape(printed.json)

    for verb in (
        "sessions",
        "log",
        "status",
        "stats",
        "projects",
        "top",
        "doctor",
        "ingest",
        "agents",
    ):
        ask(verb, verb, "--json")
    ask("show SESSION", "show", session, "--json")
    ask("show SESSION --turns", "show", session, "--turns", "--json")
    ask("show COMMIT", "show", "HEAD~1", "--json")
    ask("search", "search", "harbour", "--json")
    ask("diff", "diff", "HEAD~4", "HEAD", "--json")
    ask("export SESSION", "export", session, "--format", "json")
    ask("export COMMIT", "export", "HEAD~1", "--format", "json")
    ask("export RANGE", "export", "HEAD~3..HEAD", "--format", "json")
    ask("redact", "redact", "README.md", "--json")
    ask("note", "note", "HEAD~1", "--title", "A title", "--json")
    ask("unlink", "unlink", "HEAD~1", "--json")
    ask("link COMMIT SESSION", "link", "HEAD~1", session, "--json")
    ask("link", "link", "--json")
    ask("pause", "pause", "--json")
    ask("status, paused", "status", "--json")
    ask("resume", "resume", "--json")
    ask("restore", "restore", "HEAD~1", "--yes", "--json")
    ask("forget", "forget", session, "--dry-run", "--json")
    ask("rebuild", "rebuild", "--json")
    ask("init", "init", "--dry-run", "--json")
    ask("uninstall", "uninstall", "--dry-run", "--json")
    printed = cli("show", "nothing", "--json")
    assert printed.code == 2
    found["an error"] = _shape(printed.json)
    return found


def _shape(value: Any, name: str = "") -> Any:
    """A value with the names of types in place of what it holds; of a list what any item holds."""
    if isinstance(value, dict) and name not in BY_DATA:
        return {key: _shape(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return _together([_shape(each) for each in value])
    return "null" if value is None else type(value).__name__


def _together(shapes: list[Any]) -> list[Any]:
    """Objects become one with the fields of all; other shapes stand beside each other."""
    objects = [shape for shape in shapes if isinstance(shape, dict)]
    others = {json.dumps(shape): shape for shape in shapes if not isinstance(shape, dict)}
    found: list[Any] = [others[key] for key in sorted(others)]
    if objects:
        names = {name for each in objects for name in each}
        found.append({name: _either(objects, name) for name in sorted(names)})
    return found


def _either(objects: list[dict[str, Any]], name: str) -> Any:
    found = _together([each.get(name, "missing") for each in objects])
    return found[0] if len(found) == 1 else {"one of": found}
