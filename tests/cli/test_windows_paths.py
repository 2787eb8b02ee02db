"""Paths of a session that ran on Windows are shown relative to its folder, in every face."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor import config
from whyfor.model.conversation import ToolCallItem
from whyfor.model.paths import path_within, shorten_paths
from whyfor.server.render import render_project
from whyfor.service.session_list import ListRequest, session_list
from whyfor.service.session_peek import session_peek
from whyfor.service.show import session_item, session_view

Cli = Callable[..., Result]
FOLDER = r"C:\Users\x\proj"


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        (r"C:\Users\x\proj\src\a.py", FOLDER, "src/a.py"),
        (r"c:/Users/x/proj/src\a.py", FOLDER, "src/a.py"),
        ("/c/Users/x/proj/src/a.py", FOLDER, "src/a.py"),
        (r"C:\Users\x\project\a.py", FOLDER, r"C:\Users\x\project\a.py"),
        (r"D:\Users\x\proj\a.py", FOLDER, r"D:\Users\x\proj\a.py"),
        (FOLDER, FOLDER, FOLDER),
        (r"C:\a.py", "C:\\", r"C:\a.py"),
        ("/code/shop/a.py", "/code/shop", "a.py"),
        ("/code/shop/a.py", "/code/shop/", "a.py"),
        ("/Code/shop/a.py", "/code/shop", "/Code/shop/a.py"),
        (r"/code/shop/a\b.py", "/code/shop", r"a\b.py"),
        ("/home/code/shop/a.py", "/code/shop", "/home/code/shop/a.py"),
        ("/a.py", "/", "/a.py"),
        ("/a.py", None, "/a.py"),
    ],
)
def test_a_path_is_said_from_its_folder(path: str, folder: str | None, expected: str) -> None:
    assert path_within(path, folder) == expected


def test_paths_in_a_command_are_short_and_the_rest_stays() -> None:
    command = r'type "C:\Users\x\proj\src\a.py" C:\Windows\b.ini'
    assert shorten_paths(command, FOLDER) == r'type "src\a.py" C:\Windows\b.ini'
    assert shorten_paths("diff /code/shop/a /home/code/shop/b", "/code/shop") == (
        "diff a /home/code/shop/b"
    )


def test_a_folder_of_windows_is_called_by_its_last_name() -> None:
    assert render_project(r"C:\Users\x\proj") == "proj"
    assert render_project("example.com/acme/shop") == "acme/shop"


def test_no_face_shows_more_of_a_path_than_its_project_needs(home: Path, cli: Cli) -> None:
    told = Transcript("s1", cwd=FOLDER)
    told.prompt("Mend it")
    given = {"file_path": FOLDER + r"\src\a.py", "old_string": "a", "new_string": "b"}
    told.call("Edit", given, "The file has been updated.")
    told.call("Read", {"file_path": FOLDER + r"\src\b.py"}, "text")
    told.call("Bash", {"command": f"type {FOLDER}\\src\\c.py"}, "text")
    told.save(home)
    cli("ingest")
    ident = told.session_id
    faces = {
        "show": cli("show", ident, "--tools").out,
        "markdown": cli("export", ident, "--tools").out,
        "html": cli("export", ident, "--tools", "--format", "html").out,
    }
    for face, text in faces.items():
        assert "src/a.py" in text and "src/b.py" in text and r"src\c.py" in text, face
        assert r"proj\src" not in text, face
    settings = config.load()
    assert session_peek(settings, "claude", ident).files == ["src/a.py"]
    assert [file.path for file in session_view(settings, "claude", ident).files] == ["src/a.py"]
    shown = []
    for event in cli("show", ident, "--json").json["events"]:
        if event["kind"] == "tool.call":
            _, item = session_item(settings, "claude", ident, event["seq"])
            assert isinstance(item, ToolCallItem)
            shown.append(item.argument)
    assert shown == ["src/a.py", "src/b.py", r"type src\c.py"]
    (row,) = session_list(settings, ListRequest()).rows
    assert row.project == FOLDER
