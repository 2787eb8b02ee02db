"""Errors people are meant to read.

WhyforError            message + hint, shown as two lines, exit 2
├── NotFound              no such session, project, file
├── Ambiguous             an abbreviated id fits several things
├── BadInput              a date, query or option that cannot be understood
├── Busy                  another process holds the lock
├── MissingExtra          an optional part is not installed
├── NotSignedIn           nobody is signed in, and the team server has to know who asks
├── Forbidden             the one who asks may know of it, and may not do this with it
├── TooMany               a limit is reached; `retry_after` says in how many seconds to try again
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


class NotSignedIn(WhyforError):
    kind = "unauthorized"


class Forbidden(WhyforError):
    kind = "forbidden"


class TooMany(WhyforError):
    kind = "too_many"

    def __init__(self, message: str, hint: str, retry_after: int) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class OutdatedUpload(WhyforError):
    kind = "outdated_upload"


class Withdrawn(WhyforError):
    kind = "withdrawn"


class QuotaFull(WhyforError):
    kind = "quota"


class Unprocessable(WhyforError):
    kind = "unprocessable"


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
