"""Errors people are meant to read.

WhyforError            message + hint, shown as two lines, exit 2
├── NotFound              no such session, project, file
├── Ambiguous             an abbreviated id fits several things
├── BadInput              a date, query or option that cannot be understood
├── Busy                  another process holds the lock
├── MissingExtra          an optional part is not installed
├── NotRedacted           it cannot be made sure that no secret leaves: nothing does
└── StoreError            the store cannot be used
    ├── CorruptStore      the database is damaged; the segments are not
    ├── StoreFault        the database refused something: damage, or a fault of ours
    ├── Disagreement      the journal and the database do not say the same
    └── NewerStore        written by a newer program than this one
"""

from __future__ import annotations


class WhyforError(Exception):
    """An expected failure: what happened, and what to do next."""

    kind = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NotFound(WhyforError):
    kind = "not_found"


class Ambiguous(WhyforError):
    kind = "ambiguous"


class BadInput(WhyforError):
    kind = "bad_input"


class Busy(WhyforError):
    kind = "busy"


class MissingExtra(WhyforError):
    kind = "missing_extra"


class OutdatedUpload(WhyforError):
    kind = "outdated_upload"


class NotRedacted(WhyforError):
    kind = "not_redacted"


class StoreError(WhyforError):
    kind = "store"


class CorruptStore(StoreError):
    kind = "corrupt_store"


class StoreFault(StoreError):
    kind = "store_fault"


class Disagreement(StoreError):
    kind = "disagreement"


class NewerStore(StoreError):
    kind = "newer_store"
