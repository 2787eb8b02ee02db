#!/usr/bin/env python3
"""A stand-in for `bd`, which cannot be installed without the network: it keeps issues the way beads
exports them (.beads/issues.jsonl) and calls its hooks. Only what Whyfor reads of it is like beads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def _folder() -> Path:
    here = Path.cwd()
    return next(each / ".beads" for each in (here, *here.parents) if (each / ".beads").is_dir())


def _load(folder: Path) -> dict[str, dict[str, Any]]:
    export = folder / "issues.jsonl"
    lines = export.read_text(encoding="utf-8").splitlines() if export.exists() else []
    return {issue["id"]: issue for issue in map(json.loads, lines)}


def _save(folder: Path, issues: dict[str, dict[str, Any]]) -> None:
    text = "".join(json.dumps(issue) + "\n" for issue in issues.values())
    fresh = folder / "issues.jsonl.new"
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(folder / "issues.jsonl")


def _hook(folder: Path, name: str, issue: dict[str, Any]) -> None:
    hook = folder / "hooks" / name
    if hook.exists():
        subprocess.run([hook, issue["id"], name], input=json.dumps(issue), text=True, check=False)


def _change(issue: dict[str, Any], verb: str, options: dict[str, str]) -> str:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    status = options.get("--status", "")
    if verb == "close" or status == "closed":
        session = options.get("--session") or os.environ.get("CLAUDE_SESSION_ID", "")
        issue |= {"status": "closed", "closed_at": now, "close_reason": options.get("--reason", "")}
        issue |= {"closed_by_session": session} if session else {}
        return "on_close"
    if verb == "reopen" or status == "open":
        issue["status"] = "open"
        for gone in ("closed_at", "close_reason", "closed_by_session"):
            issue.pop(gone, None)
    elif "--claim" in options or status == "in_progress":
        issue |= {
            "status": "in_progress",
            "started_at": now,
            "assignee": os.environ.get("USER", ""),
        }
    return "on_update"


def main(words: list[str]) -> int:
    names = [word for word in words if not word.startswith("--")]
    options = dict(word.partition("=")[::2] for word in words if word.startswith("--"))
    folder = _folder()
    issues = _load(folder)
    verb, *given = names
    if verb == "create":
        key = f"tw-{len(issues) + 1}"
        issues[key] = {"id": key, "title": given[0], "status": "open"}
        _save(folder, issues)
        _hook(folder, "on_create", issues[key])
        print(f"✓ Created issue: {key}")
        return 0
    for key in given:
        if key not in issues:
            print(f"Error: no issue found matching {key}", file=sys.stderr)
            return 1
        event = _change(issues[key], verb, options)
        _save(folder, issues)
        _hook(folder, event, issues[key])
        print(f"✓ {verb} {key}: {issues[key]['title']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
