"""Restored is what the story of a commit shows: with the words that ended its turn, also when
they came after the commit was known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_stories import Session, repository
from tests.conftest import Result
from tests.service.restore.helpers import lines

__all__ = ["repository"]
Cli = Callable[..., Result]
CLOSING = "The tides are committed."


def _saved(cli: Cli) -> str:
    """What `restore HEAD` writes."""
    made = cli("restore", "HEAD", "--yes", "--json").json
    return "\n".join(map(str, lines(made["path"])))


@pytest.mark.parametrize("read", ["at the end", "after the commit", "only after the commit"])
def test_the_closing_words_of_the_turn_are_restored(
    read: str, repository: Path, home: Path, cli: Cli
) -> None:
    session = Session("first", repository)
    session.prompt("Commit the tides.")
    session.write(repository / "tides.py", "def tide():\n    return 'high'\n")
    session.commit(repository, "Add the tides")
    session.save(home)
    if read != "at the end":
        cli("ingest")
        assert cli("log", "--json").json[0]["checkpoint"]["sessions"]
    session.say(CLOSING)
    session.add("system", {}, subtype="turn_duration", durationMs=1000)
    session.save(home)
    if read != "only after the commit":
        cli("ingest")
        shown = cli("show", "HEAD").out
        assert CLOSING in shown
    assert CLOSING in _saved(cli)
    session.prompt("And now the moon")
    session.say("It shines.")
    session.save(home)
    cli("ingest")
    assert CLOSING in _saved(cli)
    assert "the moon" not in _saved(cli)
