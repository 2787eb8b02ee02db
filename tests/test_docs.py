"""Documentation coverage: every command, option, setting, error and event kind is in the docs."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module

import click
import pytest

from tests.conftest import REPOSITORY
from whyfor import __version__
from whyfor.agents import AGENTS
from whyfor.cli import COMMANDS, root
from whyfor.config import Settings
from whyfor.model import errors
from whyfor.model.checkpoints import EVIDENCE, TAGS
from whyfor.model.events import KINDS
from whyfor.model.query import FIELDS

PAGES = {path.name: path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs").glob("*.md")}
ALL = "\n".join(PAGES.values())
# The page a command's options stand on, where it is not the command's own.
HOME_PAGE = {
    "show": "sessions.md",
    "unlink": "link.md",
    "logout": "login.md",
    "whoami": "login.md",
    "share": "sync.md",
    "keep-local": "sync.md",
    "uninstall": "init.md",
    "resume": "pause.md",
    "config": "settings.md",
    "completion": "shell.md",
    "man": "shell.md",
}


def _command(name: str) -> click.Command:
    command = import_module(f"whyfor.cli.{name.replace('-', '_')}").command
    assert isinstance(command, click.Command)
    return command


def _params(command: click.Command) -> list[click.Parameter]:
    """Its parameters and those of the commands below it."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return [*command.params, *(param for each in below for param in each.params)]


def _page(name: str) -> str:
    return HOME_PAGE.get(name, f"{name}.md")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_on_its_page(name: str) -> None:
    page = PAGES[_page(name)]
    options = [
        o
        for param in _params(_command(name))
        if isinstance(param, click.Option) and not param.hidden
        for o in param.opts
    ]
    assert options
    assert [
        option for option in options if f"`{option}" not in page and f", `{option}" not in page
    ] == []
    assert f"whyfor {name}" in page


def test_every_option_of_the_whole_program_is_on_a_page() -> None:
    options = [o for param in root.params for o in param.opts if o != "--version"]
    assert len(options) == 6
    assert [option for option in options if f"`{option}" not in PAGES["shell.md"]] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_no_page_names_an_option_that_is_not_there(name: str) -> None:
    page = PAGES[_page(name)]
    both = [
        _command(other)
        for other in COMMANDS
        if HOME_PAGE.get(other, f"{other}.md") == HOME_PAGE.get(name, f"{name}.md")
    ]
    known = {o for command in both for param in _params(command) for o in param.opts}
    known |= {"--dry-run", *(o for param in root.params for o in param.opts), "--help"}
    assert set(re.findall(r"`(--[a-z-]+)", page)) - known == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_in_a_commands_help_stand_on_lines_of_their_own(name: str) -> None:
    command = _command(name)
    shown = command.get_help(click.Context(command, info_name=f"whyfor {name}"))
    assert "\b" not in shown
    assert "Examples:" not in shown or "  Examples:\n    whyfor" in shown


@pytest.mark.parametrize("word", [*KINDS, *FIELDS, *AGENTS, *EVIDENCE, *TAGS])
def test_every_word_of_the_model_is_in_the_docs(word: str) -> None:
    assert f"`{word}`" in ALL


def test_every_error_kind_is_in_the_docs() -> None:
    kinds = {
        cls.kind
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, errors.WhyforError)
    }
    assert {kind for kind in kinds - {"error"} if f"| `{kind}` |" not in PAGES["json.md"]} == set()


def test_every_setting_is_in_the_docs() -> None:
    source = (REPOSITORY / "src" / "whyfor").rglob("*.py")
    variables = {
        v
        for path in source
        for v in re.findall(r'"(WHYFOR_[A-Z]+)"', path.read_text(encoding="utf-8"))
    }
    assert variables == {"WHYFOR_HOME", "WHYFOR_DEBUG", "WHYFOR_SESSION", "WHYFOR_PROBE"}
    for name in [
        *variables,
        *(f for f in Settings.__struct_fields__ if f not in ("home", "user_home", "env", "lend")),
    ]:
        assert f"`{name}`" in PAGES["settings.md"]


def _targets(text: str) -> list[str]:
    return re.findall(r"\]\(([^)#:]+)\)", text) + re.findall(r' src(?:set)?="([^"]+)"', text)


def test_every_link_between_pages_leads_somewhere() -> None:
    texts = {
        **{f"docs/{name}": text for name, text in PAGES.items()},
        **{path.name: path.read_text(encoding="utf-8") for path in REPOSITORY.glob("*.md")},
    }
    broken = [
        (name, target)
        for name, text in texts.items()
        for target in _targets(text)
        if not (REPOSITORY / name).parent.joinpath(target).exists()
    ]
    assert broken == []
    shown = {target for target in _targets(PAGES["dashboard.md"]) if target.startswith("images/")}
    assert shown == {f"images/{path.name}" for path in (REPOSITORY / "docs" / "images").iterdir()}


def test_the_readme_names_both_commands_on_its_first_screen() -> None:
    first_screen = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()[:25]
    assert any(line.startswith("make run") for line in first_screen)
    assert any(line.startswith("make test") for line in first_screen)


def test_every_test_that_the_security_page_names_is_there() -> None:
    page = (REPOSITORY / "SECURITY.md").read_text()
    named = set(re.findall(r"`((?:tests/[\w/]+/)?test_\w+\.py)`", page))
    assert len(named) > 10
    missing = [name for name in named if not (REPOSITORY / name).exists()]
    assert [name for name in missing if not (REPOSITORY / "tests" / "attack" / name).exists()] == []


def test_every_room_and_file_that_the_architecture_page_names_is_there() -> None:
    page = PAGES["architecture.md"]
    source = REPOSITORY / "src" / "whyfor"
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.py)?|[a-z_]+\.py)`", page))
    assert len(named) > 40
    inner = {name for name in named if not (source / name).exists()}
    homes = [source / "story" / "links", source / "story", source / "capture", source.parent.parent]
    assert {name for name in inner if not any((home / name).exists() for home in homes)} == set()


def test_the_architecture_page_has_the_layers_that_are_enforced() -> None:
    enforced = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ][0]
    layers = [line.replace("whyfor.", "") for line in enforced["layers"] if "__main__" not in line]
    assert "\n".join(layers) in PAGES["architecture.md"]
    rooms = {
        path.name
        for path in (REPOSITORY / "src" / "whyfor").iterdir()
        if (path / "__init__.py").exists()
    }
    assert {room for room in rooms if f"`{room}/`" not in PAGES["architecture.md"]} == set()


def _index_groups() -> dict[str, list[str]]:
    """Return the headings of docs/index.md, each with the pages linked below it."""
    first, *parts = re.split(r"^## ", PAGES["index.md"], flags=re.MULTILINE)
    assert [target for target in _targets(first) if target in PAGES] == []
    groups = {}
    for part in parts:
        title, _, body = part.partition("\n")
        groups[title] = _targets(body)
    return groups


def test_every_page_is_in_one_group_of_the_index() -> None:
    linked = [target for targets in _index_groups().values() for target in targets]
    pages = [target for target in linked if target in PAGES]
    assert sorted(pages) == sorted(PAGES.keys() - {"index.md"})
    assert len(linked) == len(set(linked))


def test_the_readme_has_the_groups_of_the_index() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\w+) \| (\[.*) \|$", readme, flags=re.MULTILINE))
    shown = {
        group: {target.removeprefix("docs/") for target in _targets(row)}
        for group, row in rows.items()
    }
    index = _index_groups()
    assert list(shown) == list(index)
    for group, targets in index.items():
        assert shown[group] <= {target.removeprefix("../") for target in targets}, group


def test_the_readme_leads_to_the_index_the_guide_the_changelog_and_the_licence() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert {"docs/index.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"} <= set(_targets(readme))


def test_the_changelog_begins_with_this_version() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, *_ = re.findall(
        r"^## (\S+) \((?:unreleased|\d{4}-\d\d-\d\d)\)$", changelog, flags=re.MULTILINE
    )
    assert newest == __version__
