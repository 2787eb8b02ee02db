"""The name this program had before its first release: hooks that carry it are taken out by
`init` and `uninstall`.

The only place where the former name is written.
"""

from __future__ import annotations

GIT_STAMP = b"# backstory hook, written by `backstory init`"
GIT_CHAINED = ".backstory-chained"
GIT_FOLDER = "backstory-hooks"
COMMAND_MARK = "# backstory"
COPILOT_FILE = "hooks/backstory.json"
SKILL = "backstory-note"
