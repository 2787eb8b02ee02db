"""Backup and restore of a whole team server: its database, then its objects.

Objects are never changed, and the database is dumped first. So every object that a row names is in
the backup, or was deleted on purpose since. A restore goes the other way: objects first.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from whyfor.files import replace
from whyfor.model.errors import BadInput
from whyfor.model.times import to_iso
from whyfor.store.objects import copy_objects, open_objects
from whyfor.store.shared import dump_database, migrate_team, restore_database
from whyfor.team.settings import TeamSettings

_MANIFEST = "backup.json"  # written last: without it a backup is not whole
_DATABASE = "database.dump"
_FORMAT = 1


class BackupReport(msgspec.Struct, frozen=True):
    """What a backup has."""

    format: int
    made_at: str
    objects: int
    bytes: int  # of objects
    new: int  # objects that were not in the folder before


def back_up(settings: TeamSettings, folder: Path) -> BackupReport:
    """Write a backup into a folder; objects that an earlier backup left there are not copied
    again."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / _MANIFEST).unlink(missing_ok=True)
    dump_database(settings.owner_url, folder / _DATABASE)
    copied = copy_objects(
        open_objects(settings.blobs_url, dict(settings.blob_options) or None),
        open_objects(_kept(folder)),
    )
    report = BackupReport(
        _FORMAT, to_iso(int(time.time() * 1000)) or "", copied.objects, copied.bytes, copied.new
    )
    replace(folder / _MANIFEST, msgspec.json.encode(report))
    return report


def restore_backup(settings: TeamSettings, folder: Path) -> BackupReport:
    """Restore a backup into an empty database and an object store. Raises BadInput if the backup is
    not whole, or the database is not empty."""
    report = _manifest(folder)
    copied = copy_objects(
        open_objects(_kept(folder)),
        open_objects(settings.blobs_url, dict(settings.blob_options) or None),
    )
    if copied.objects < report.objects:
        raise BadInput(
            f"{report.objects - copied.objects} objects of this backup are missing",
            "Use another backup.",
        )
    restore_database(settings.owner_url, folder / _DATABASE)
    migrate_team(settings.owner_url, settings.db_url)
    return msgspec.structs.replace(report, new=copied.new)


def _manifest(folder: Path) -> BackupReport:
    try:
        report = msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=BackupReport)
    except (OSError, msgspec.DecodeError):
        raise BadInput(
            f"{folder} is not a whole backup", "Make one: whyfor server backup FOLDER"
        ) from None
    if report.format > _FORMAT:
        raise BadInput("this backup is of a newer version", "Upgrade Whyfor on this machine.")
    return report


def _kept(folder: Path) -> str:
    return (folder / "objects").absolute().as_uri()
