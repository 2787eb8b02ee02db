"""export: the story of a branch, a commit or a session in one piece, to be shared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from whyfor.config import Settings
from whyfor.files import replace
from whyfor.git import history
from whyfor.git.place import GitPlace, name_place
from whyfor.git.run import ask
from whyfor.model.errors import BadInput, NotFound, StoreError
from whyfor.model.stories import CommitStory, FullStory
from whyfor.model.wire.commits import wire_whole_story
from whyfor.model.wire.sessions import wire_transcript
from whyfor.privacy.redacted_text import RedactedSecrets, redacted
from whyfor.service.export import html, markdown
from whyfor.service.export.document import (
    Chapter,
    Document,
    Narrator,
    of_commits,
    of_session,
    said_lines,
)
from whyfor.store.open import OpenStore, reading
from whyfor.story.commit_lookup import is_commit, require_checkout, require_commit
from whyfor.story.commit_stories import conversation_lines, stories_of
from whyfor.story.session_lookup import load_conversation


class ExportRequest(msgspec.Struct, frozen=True):
    """How an export shall be."""

    form: str  # markdown | html | json; JSON always has everything
    thinking: bool = False
    tools: bool = False
    redact: bool = True


class Exported(msgspec.Struct, frozen=True):
    text: str
    found: RedactedSecrets  # what was secret in it, or still is


def export(settings: Settings, reference: str, cwd: Path, wanted: ExportRequest) -> Exported:
    """A range of commits (main..HEAD), a commit or a session."""
    if ".." not in reference and not is_commit(settings, reference, cwd):
        return _session(settings, reference, wanted)
    with reading(settings) as library:
        here = name_place(cwd)
        told = _commits(library, reference, here)
        narrator = Narrator(library, here, thinking=wanted.thinking, tools=wanted.tools)
        if wanted.form == "json":
            stories = [narrator.story(each) for each in told]
            bodies = [
                wire_whole_story(each, conversation_lines(settings, each.told)) for each in stories
            ]
            return _as_json(settings, bodies if ".." in reference else bodies[0], wanted)
        document = of_commits(narrator, _title(reference, here, told), reference, told)
        return _rendered(settings, document, wanted)


def export_sessions(settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """Return sessions (agent:id) as Markdown files without secrets, by file name."""
    found: dict[str, str] = {}
    for name in names:
        file = re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:100] + ".md"
        found[file] = _session(settings, name, ExportRequest("markdown", tools=True)).text
    return found


def save(path: Path, text: str) -> None:
    try:
        if path.exists() and not path.is_file():  # a pipe or a device is written to, not replaced
            path.write_bytes(encoded(text))
        else:
            replace(path, encoded(text))
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}", "Give another place with --output."
        ) from None


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # half a surrogate pair in a transcript is no text


def commit_markdown(story: FullStory) -> str:
    """One commit, as `show --markdown` gives it."""
    return markdown.write_markdown(Document("", [], [Chapter(story, said_lines(story))]))


def _commits(library: OpenStore, reference: str, cwd: GitPlace) -> list[CommitStory]:
    """Oldest first."""
    if ".." not in reference:
        return stories_of(library, cwd, [require_commit(library, reference, cwd)])
    folder = require_checkout(cwd, "Go to one, or export a session: whyfor sessions")
    if reference.startswith("-"):
        raise BadInput(f"not a range: {reference}", "Give one such as main..HEAD.")
    found = history.commits(folder, [reference])
    if not found:
        raise NotFound(
            f"no commits in {reference}", "A range goes from the older to the newer: main..HEAD"
        )
    return stories_of(library, cwd, [commit.sha for commit in found])


def _title(reference: str, cwd: GitPlace, told: list[CommitStory]) -> str:
    """The branch a range ends at, or the commit."""
    if ".." not in reference:
        return told[0].commit.subject
    end = reference.rsplit("..", 1)[1].lstrip(".") or "HEAD"
    branch = ask(cwd, "symbolic-ref", "--quiet", "--short", "HEAD") if end == "HEAD" else end
    return f"The story of {branch or reference}"


def _session(settings: Settings, reference: str, wanted: ExportRequest) -> Exported:
    found = load_conversation(settings, reference)
    if wanted.form == "json":
        return _as_json(settings, wire_transcript(found), wanted, found.session.session_id)
    return _rendered(
        settings, of_session(found, thinking=wanted.thinking, tools=wanted.tools), wanted
    )


def _as_json(
    settings: Settings, shape: object, wanted: ExportRequest, session: str = ""
) -> Exported:
    body = msgspec.to_builtins(shape)
    clean, found = redacted(settings, body, rendered=False, session=session)
    return Exported(msgspec.json.encode(clean if wanted.redact else body).decode() + "\n", found)


def _rendered(settings: Settings, document: Document, wanted: ExportRequest) -> Exported:
    clean, found = redacted(settings, document, rendered=True)
    write = html.write_html if wanted.form == "html" else markdown.write_markdown
    return Exported(write(clean if wanted.redact else document), found)
