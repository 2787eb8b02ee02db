"""pr: the story of a pull request as one comment, edited in place."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.capture.line_cache import keep_lines
from whyfor.config import Settings
from whyfor.git.place import GitPlace, name_place
from whyfor.git.run import ask
from whyfor.model.errors import BadInput
from whyfor.model.pull_request import PostedComment, PullStory
from whyfor.privacy.redacted_text import RedactedSecrets, redacted
from whyfor.recall.branch_context import branch_base
from whyfor.service.pr.collect import PullReader
from whyfor.service.pr.comment import write_comment
from whyfor.service.pr.post import post_comment
from whyfor.store.open import reading_local
from whyfor.story.commit_lookup import require_checkout

TOOLS = ("gh", "glab")


class PullComment(msgspec.Struct, frozen=True):
    """The comment, and what was taken out of it."""

    story: PullStory
    text: str
    found: RedactedSecrets


def build_comment(settings: Settings, cwd: Path, revisions: str | None = None) -> PullComment:
    """Return the comment of a range, without its secrets. Default: the branch since it left the
    main one. Raises BadInput and NotFound for revisions that are not there."""
    with reading_local(settings) as library:
        folder = require_checkout(name_place(cwd), "Go to the repository of the pull request.")
        reader = PullReader(library, folder)
        story = reader.story(revisions or _own_range(folder))
    keep_lines(settings, reader.range.blamer.fresh.values())
    clean, found = redacted(settings, story, rendered=True)
    return PullComment(clean, write_comment(clean), found)


def send_comment(cwd: Path, tool: str, text: str) -> PostedComment:
    """Put the comment at the pull request of the current branch, in place of the one that is
    there. Raises NotFound if the tool is missing or has no pull request."""
    return post_comment(Path(cwd), tool, text)


def _own_range(folder: GitPlace) -> str:
    branch = ask(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    base = branch_base(folder, branch)
    if base is None:
        raise BadInput(
            "this is the main branch, or it is not known where it began", "Give a range: main..HEAD"
        )
    return f"{base}..HEAD"
