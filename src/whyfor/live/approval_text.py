"""The full text of a pending approval; live state keeps only its beginning."""

from __future__ import annotations

from whyfor.model.sessions import Session
from whyfor.model.status import PendingApproval
from whyfor.store.open import OpenStore
from whyfor.story.status.inputs import TEXT_MAX, said

WHOLE = 256 << 10  # characters
_LATELY = 400  # events among which the call is looked for


def whole_approval(library: OpenStore, session: Session, asked: PendingApproval | None) -> str:
    """Return the full text; empty if nothing was cut, or if no transcript contains the rest yet."""
    if asked is None or not asked.cut or not asked.action or not session.id:
        return ""
    children = library.sessions.children([session.session_id])
    for number in (session.id, *(child.id for child in children if child.agent == session.agent)):
        for event in library.conversation.long_calls(number, _LATELY, TEXT_MAX):
            if (text := said(event, session.agent)).startswith(asked.action) and len(text) > len(
                asked.action
            ):
                return text[:WHOLE]
    return ""
