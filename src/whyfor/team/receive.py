"""What machines send, as a team server takes it."""

from __future__ import annotations

from whyfor.model.sync import ReceivedUpload, SessionUpload, UploadedSegment, UploadPlan
from whyfor.sync.receive import OBJECT_MAX, UploadReceiver, check_upload

__all__ = [
    "OBJECT_MAX",
    "ReceivedUpload",
    "SessionUpload",
    "UploadPlan",
    "UploadReceiver",
    "UploadedSegment",
    "check_upload",
]
