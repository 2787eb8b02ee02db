"""What sessions are called, from their prompts."""

from __future__ import annotations

import re
from typing import Any

from whyfor.model.titles import TITLE_PLAN, TITLE_PROMPT, title_of_prompt
from whyfor.store.sql.database import StoreDatabase
from whyfor.store.sql.search_index import index_title

TITLE_LONGEST = 200  # characters
_LOOKED_AT = 2000  # characters of a line
# A link of Markdown, as editors put files into prompts.
_LINK = re.compile(r"\[([^\[\]\n]+)\]\([^()\s]+\)")


def headline(text: str) -> str:
    """The first line with words in it, without the targets of links, short enough for a table."""
    for line in text.splitlines():
        if line.strip():
            words = _LINK.sub(r"\1", " ".join(line.split())[:_LOOKED_AT]).replace("\x00", "\u2400")
            return words if len(words) <= TITLE_LONGEST else words[: TITLE_LONGEST - 1] + "…"
    return ""


def name_by_prompt(row: dict[str, Any], text: str, least: int) -> None:
    """Call a session as a prompt does, if that is worth at least so much."""
    if least > TITLE_PLAN:
        return
    found = title_of_prompt(text)
    if found is not None and found.rank >= least:
        row["title_rank"], row["title"] = found.rank, headline(found.text)


def name_sessions(db: StoreDatabase) -> None:
    """Name the sessions of a database whose titles were the first lines of their first prompts."""
    sessions = list(db.execute("SELECT id, title, title_rank, started_at FROM sessions"))
    for session, title, rank, started_at in sessions:
        row = {"title": title, "title_rank": -1 if rank == TITLE_PROMPT else rank}
        prompts = db.execute(
            "SELECT text FROM events WHERE session_id=? AND kind='user.prompt' ORDER BY id",
            (session,),
        )
        for (text,) in prompts:
            name_by_prompt(row, str(text), row["title_rank"] + 1)
        if (row["title"], row["title_rank"]) == (title, rank):
            continue
        db.execute(
            "UPDATE sessions SET title=?, title_rank=? WHERE id=?",
            (row["title"], row["title_rank"], session),
        )
        if row["title_rank"] > TITLE_PROMPT:
            index_title(db, session, row["title"], started_at)
