"""What goes onto the card of a session."""

from __future__ import annotations

import pytest

from whyfor.recall.cards import commit_messages


@pytest.mark.parametrize(
    ("command", "messages"),
    [
        ("git commit -m 'Mend it'", ["Mend it"]),
        ('git -C sub commit -am "Mend \\"it\\""', ['Mend \\"it\\"']),
        ('git commit -m "One" -m "Two"', ["One", "Two"]),
        ("git commit --message=fix", ["fix"]),
        ("git commit -m \"$(cat <<'EOF'\nMend it\n\nLonger.\nEOF\n)\"", ["Mend it\n\nLonger."]),
        ("git commit --amend --no-edit", []),
        ("git log -m 'commit'", []),
        ("echo commit -m 'no'", []),
        ("git commit -m", []),
    ],
)
def test_messages_are_read_from_the_command(command: str, messages: list[str]) -> None:
    assert commit_messages(command) == messages
