"""The name of this program before its first release. `init` and `uninstall` remove hooks with this
name.

This is the only place where the former name is written.
"""

from __future__ import annotations

GIT_STAMP = b"# backstory hook, written by `backstory init`"
GIT_CHAINED = ".backstory-chained"
GIT_FOLDER = "backstory-hooks"
COMMAND_MARK = "# backstory"
COPILOT_FILE = "hooks/backstory.json"
SKILL = "backstory-note"
