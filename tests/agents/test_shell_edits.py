"""Lines that shell commands of the real agents wrote: `sed -i`, a generator script."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from whyfor.capture import spool
from whyfor.model.shell_edits import SHELL_EDITS

from . import AGENTS, Call, Reply, Request, Say
from .script import Answer, Step
from .test_stories import PATIENCE, Desk, bare, desk, shell, work

__all__ = ["bare", "desk"]

GENERATOR = "for n in range(3):\n    print(f'route_{n} = make_route({n})')\n"


@pytest.fixture
def watched(desk: Desk) -> Iterator[Desk]:
    desk.whyfor("init", "--shell-edits")
    (desk.repo / "shop.py").write_text("first = order(1)\nsecond = order(2)\nthird = order(3)\n")
    (desk.repo / "generate.py").write_text(GENERATOR)
    desk.git("add", "-A")
    desk.git("commit", "-q", "-m", "By hand")
    yield desk
    desk.whyfor("uninstall", "--all")
    assert not (desk.kept / "snapshots").exists()


def told(home: Path) -> int:
    """How many commands were looked at so far."""
    data = b"".join(path.read_bytes() for path in spool.files(home))
    return data.count(b'"event":"%s"' % SHELL_EDITS.encode())


def after(number: int, desk: Desk, step: Call) -> Step:
    """Go on as a model does, which takes longer than a snapshot: the first, at the prompt, or
    those around this number of commands."""

    def wait(request: Request) -> Answer:
        end = time.monotonic() + PATIENCE
        taken = desk.kept / "snapshots"
        while not any(taken.glob("*/state")) or told(desk.kept) < number:
            assert time.monotonic() < end, "no snapshot was taken"
            time.sleep(0.05)
        return Reply(step)

    return wait


@pytest.mark.parametrize("name", AGENTS)
def test_lines_that_shell_commands_wrote_have_their_turn(name: str, watched: Desk) -> None:
    desk = watched
    shop = desk.repo / "shop.py"
    shop.write_text(shop.read_text() + "mine = order(4)  # a person, before the prompt\n")
    run = work(
        desk.agent(name),
        "Rename second and generate the routes",
        after(0, desk, shell("sed -i 's/second = order(2)/later = delayed_order(2)/' shop.py")),
        after(1, desk, shell("python3 generate.py > routes.py")),
        after(2, desk, shell("git add -A && git commit -q -m Routes")),
        Say("Done."),
    )
    assert told(desk.kept) == 2, "reading and committing is not looked at"
    lines = desk.read("blame", "shop.py")["lines"]
    assert [(line["who"]["kind"], line["who"]["evidence"]) for line in lines] == [
        ("unknown", None),
        ("agent", "shell"),
        ("unknown", None),
        ("person", "inferred"),
    ]
    assert lines[1]["who"]["session"] == run.session_id
    routes = desk.read("blame", "routes.py")["lines"]
    assert {(line["who"]["kind"], line["who"]["evidence"]) for line in routes} == {
        ("agent", "shell")
    }
    assert len(routes) == 3
    objects = desk.git("count-objects", "-v").splitlines()
    desk.git("gc", "-q", "--prune=now")
    assert "count: 0" not in objects, "git's own objects, none of ours"
    assert desk.git("fsck", "--unreachable", "--no-reflogs") == ""
