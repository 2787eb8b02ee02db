"""Erasing a member: their account and name, and their stories unless these are to stay."""

from __future__ import annotations

from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.store.shared import ErasedPerson, erase_person
from whyfor.team.settings import TeamSettings


def erase_member(settings: TeamSettings, email: str, *, keep: bool) -> ErasedPerson:
    """Erase a person for good; rows first, then the objects that nobody else has. With `keep` their
    stories stay, by `former member 12`."""
    gone = erase_person(settings.owner_url, email, keep=keep)
    bucket = open_objects(settings.blobs_url, dict(settings.blob_options) or None)
    for project, digest in gone.objects:
        ObjectBlobs(bucket, project).remove([digest])
    return gone
