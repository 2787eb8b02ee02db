"""Errors people are meant to read.

BackstoryError            message + hint, shown as two lines, exit 2
├── NotFound              no such session, project, file
├── Ambiguous             an abbreviated id fits several things
├── BadInput              a date, query or option that cannot be understood
├── Busy                  another process holds the lock
├── NotRedacted           it cannot be made sure that no secret leaves: nothing does
└── StoreError            the store cannot be used
    ├── CorruptStore      the database is damaged; the segments are not
    ├── Disagreement      the journal and the database do not say the same
    └── NewerStore        written by a newer program than this one
"""

from __future__ import annotations


class BackstoryError(Exception):
    """An expected failure: what happened, and what to do next."""

    kind = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NotFound(BackstoryError):
    kind = "not_found"


class Ambiguous(BackstoryError):
    kind = "ambiguous"


class BadInput(BackstoryError):
    kind = "bad_input"


class Busy(BackstoryError):
    kind = "busy"


class NotRedacted(BackstoryError):
    kind = "not_redacted"


class StoreError(BackstoryError):
    kind = "store"


class CorruptStore(StoreError):
    kind = "corrupt_store"


class Disagreement(StoreError):
    kind = "disagreement"


class NewerStore(StoreError):
    kind = "newer_store"
