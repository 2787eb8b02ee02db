"""Claude Code's tools: what a call is given, what the model sees, and the richer result kept
beside it."""

from __future__ import annotations

from collections.abc import Callable

from projects import hunk
from terminal import run
from transcripts.transcript import Record, Transcript

Use = tuple[Record, str, object]


def _bash(session: Transcript) -> Use:
    command, output = run(session.rng, session.files, session.prose)
    line = f"cd {session.files.project.cwd} && {command}"
    streams = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    return {"command": line, "description": session.prose.title()}, output or "(no output)", streams


def _read(session: Transcript) -> Use:
    path = session.files.path()
    start, lines = session.files.slice(path)
    content = "\n".join(f"{start + at:6d}→{line}" for at, line in enumerate(lines))
    file: Record = {
        "filePath": session.files.absolute(path),
        "content": "\n".join(lines),
        "startLine": start,
    }
    file |= {"numLines": len(lines), "totalLines": len(session.files.files[path])}
    return {"file_path": file["filePath"]}, content, {"type": "text", "file": file}


def _edit(session: Transcript) -> Use:
    change = session.files.edit()
    start, marked, context = hunk(change)
    path = session.files.absolute(change.path)
    old, new = "\n".join(change.old), "\n".join(change.new)
    counts = {"oldLines": len(change.old) + context, "newLines": len(change.new) + context}
    patch = {"oldStart": start, "newStart": start, **counts, "lines": marked}
    given: Record = {"file_path": path, "old_string": old, "new_string": new, "replace_all": False}
    result: Record = {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "structuredPatch": [patch],
    }
    result |= {"originalFile": "\n".join(change.before), "userModified": False, "replaceAll": False}
    return given, f"The file {path} has been updated successfully.", result


def _write(session: Transcript) -> Use:
    created, lines = session.files.create()
    path, content = session.files.absolute(created), "\n".join(lines)
    result: Record = {"type": "create", "filePath": path, "content": content, "structuredPatch": []}
    done = f"File created successfully at: {path}"
    return {"file_path": path, "content": content}, done, result | {"originalFile": None}


def _grep(session: Transcript) -> Use:
    names = session.rng.sample(list(session.files.files), session.rng.randint(1, 14))
    content = f"Found {len(names)} files\n" + "\n".join(map(session.files.absolute, names))
    given: Record = {"pattern": session.rng.choice(session.files.project.functions)}
    mode = {"output_mode": "files_with_matches"}
    return (
        given | mode,
        content,
        {"mode": "files_with_matches", "filenames": names, "numFiles": len(names)},
    )


def _todo_write(session: Transcript) -> Use:
    title = session.prose.title
    states = ["completed", "in_progress", "pending", "pending"]
    todos = [{"content": title(), "status": state, "activeForm": title()} for state in states]
    return (
        {"todos": todos},
        "Todos have been modified successfully.",
        {"oldTodos": todos, "newTodos": todos},
    )


_TOOLS: dict[str, Callable[[Transcript], Use]] = {
    "Bash": _bash,
    "Read": _read,
    "Edit": _edit,
    "Write": _write,
    "Grep": _grep,
    "TodoWrite": _todo_write,
}
_WEIGHTS = [50, 20, 19, 2.5, 6, 6]


def use_tool(session: Transcript) -> tuple[str, Record, str, object]:
    """A tool's name and one use of it, in the proportions seen in real sessions."""
    name = session.rng.choices(list(_TOOLS), weights=_WEIGHTS)[0]
    return name, *_TOOLS[name](session)
