"""A file on a team server, which has no repository: the commits that members shared of it."""

from __future__ import annotations

from collections.abc import Iterable

from whyfor.config import Settings
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.file_page import FilePage, FileStory
from whyfor.model.sessions import Person, Project
from whyfor.service.file_page.shared_cards import SharedCards
from whyfor.service.memory_page import notes_about_files
from whyfor.store.open import OpenStore, reading

_LOOKED = 2_000  # commits with a story that are looked through, newest first
_SHOWN = 100
_PATH = 4096  # characters


def shared_file_page(settings: Settings, identity: str, path: str) -> FilePage:
    """Return what is known of a file without its lines. Raises NotFound for an unknown project,
    BadInput for what is no path."""
    if not path or "\0" in path or len(path) > _PATH:
        raise BadInput(f"{path[:80]!r} is no path of a file", "Open a file from a commit.")
    with reading(settings) as library:
        found = _project(library, identity)
        if found is None:
            raise NotFound(f"no project is called {identity[:80]!r}", "Open it from Projects.")
        number, project = found
        kept = library.checkpoints.of_commits(library.checkpoints.kept_since(number, 0, _LOOKED))
        inside = _from_top(path, kept.values())
        changed = [one for one in kept.values() if any(each.path == inside for each in one.files)]
        changed.sort(key=lambda one: -one.committed_at)
        stories = _stories(library, changed[:_SHOWN], inside)
        cards = SharedCards(library)
        for one in changed[:_SHOWN]:
            for each in one.files:
                if each.path == inside:
                    cards.add_change(one, each)
    return FilePage(
        project=project,
        path=inside,
        state="shared",
        stories=stories,
        more_versions=len(changed) > _SHOWN,
        shares=cards.shares(),
        reasons=cards.reasons,
        cards=cards.listed(),
        notes=notes_about_files(settings, project.identity, [inside]),
    )


def _project(library: OpenStore, identity: str) -> tuple[int, Project] | None:
    """Return the project that is meant; without a name the one that there is."""
    if identity:
        return library.projects.find(identity)
    known = library.projects.known()
    return known[0] if known else None


def _from_top(path: str, kept: Iterable[Checkpoint]) -> str:
    """Return a path from the top of the repository. Sessions name files by where they were on a
    laptop: the longest path of a commit that such a one ends with is meant."""
    wanted = path.replace("\\", "/")
    known = {changed.path for one in kept for changed in one.files}
    if wanted in known:
        return wanted
    ends = [each for each in known if wanted.endswith(f"/{each}")]
    return max(ends, key=len, default=wanted)


def _stories(library: OpenStore, changed: list[Checkpoint], path: str) -> list[FileStory]:
    names = {(part.agent, part.session_id) for one in changed for part in one.parts}
    sessions = {f"{a}:{s}": library.sessions.find(s, a).id for a, s in sorted(names)}
    people = library.people_of(sessions.values())

    def told(one: Checkpoint) -> FileStory:
        [file] = [each for each in one.files if each.path == path]
        numbers = [sessions[part.name] for part in one.parts]
        who = {people[number].id: people[number] for number in numbers if number in people}
        agents = dict.fromkeys(part.agent for part in one.parts)
        intent = one.annotation.intent if one.annotation else ""
        return FileStory(
            *(one.commit, one.subject, one.committed_at, intent, file.added, file.removed),
            agents=tuple(agents),
            people=tuple(sorted(who.values(), key=_by_name)),
        )

    return [told(one) for one in changed]


def _by_name(person: Person) -> str:
    return person.name.lower()
