"""Whether a person paused us, or excluded a project or an agent.

Read only where there is a pause or a list of exclusions: most hooks never pay for it.
"""

import posix
import time

import announce  # type: ignore[import-not-found]

# of the tool call an event tells of
FILES = b"file_path filePath path notebook_path absolute_path".split()


class Announcement:
    """An event, and the places and repositories it is about."""

    def __init__(self, agent: bytes, told: bytes) -> None:
        self.agent = agent
        self.told = told
        project = posix.environ.get(b"CLAUDE_PROJECT_DIR")
        named = (announce.cwd(), announce.field(told, b"cwd"), project)
        self.places = [place for place in named if place and b"\0" not in place]
        self.repositories = [git_folder(place) for place in self.places]
        if agent == b"git" and b"GIT_DIR" in posix.environ:
            self.repositories.append(shared_folder(posix.environ[b"GIT_DIR"]))

    def files(self) -> list[bytes]:
        """Return the files that the tool call names."""
        paths = [announce.field(self.told, name) for name in FILES]
        return [path for path in paths if path[:1] == b"/" and b"\0" not in path]

    def sessions(self) -> list[bytes]:
        """Return the ids by which the payload and the environment call its session."""
        found = [announce.field(self.told, b"session_id"), announce.field(self.told, b"sessionId")]
        for name in announce.TOLD:
            if name in posix.environ:
                found.append(posix.environ[name].rpartition(b":")[2])
        return found


def is_unwanted(event: Announcement, excluded: bytes, pauses: list[bytes]) -> bool:
    """Return whether nothing of this event may be written anywhere."""
    agent = event.agent
    if is_excluded(excluded, agent, event.places, event.repositories):
        return True
    if any(is_paused(pause, event) for pause in pauses):
        return True
    files = event.files()
    return is_excluded(excluded, agent, files, [git_folder(path) for path in files])


# -- pauses --------------------------------------------------------------------------------------


def is_paused(pause: bytes, event: Announcement) -> bool:
    """Return whether a pause holds now and for this event: it is of everything, of a repository or
    of one session."""
    lines = [line.partition(b" ")[::2] for line in pause.split(b"\n")]
    facts = dict(lines)
    until = facts.get(b"until", b"")
    if not facts.get(b"since", b"").isdigit():
        return False
    if until.isdigit() and int(until) <= time.time_ns() // 1_000_000:
        return False
    if b"session" in facts:
        agent, _, ident = facts[b"session"].partition(b":")
        return ident in event.sessions() and (not agent or event.agent in (agent, b"git"))
    if b"repository" not in facts:
        return True
    trees = tuple(value + b"/" for key, value in lines if key == b"folder")
    if any((place + b"/").startswith(trees) for place in event.places):
        return True
    return any(is_same(found, facts[b"repository"]) for found in event.repositories)


def is_same(one: bytes, other: bytes) -> bool:
    """Return whether two paths lead to the same file."""
    try:
        a, b = posix.stat(one), posix.stat(other)
    except OSError:
        return one == other
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


# -- exclusions ----------------------------------------------------------------------------------


def is_excluded(
    listed: bytes, agent: bytes, places: list[bytes], repositories: list[bytes]
) -> bool:
    """Return whether a line of the list that the configuration was written out to fits: `path
    GLOB`, `project GLOB`, `agent NAME`."""
    urls: list[bytes] | None = None
    for line in listed.splitlines():
        kind, _, pattern = line.partition(b" ")
        if kind == b"agent" and pattern == agent:
            return True
        if kind == b"path" and any(covers(pattern, at) for at in places):
            return True
        if kind == b"project":
            if urls is None:
                configs = [announce.content(at + b"/config") for at in repositories if at]
                urls = remotes(b"\n".join(configs))
            if any(covers(pattern, url) for url in urls):
                return True
    return False


def remotes(config: bytes) -> list[bytes]:
    """Return the addresses in git's configuration as hosts and paths: `github.com/acme/shop`,
    whatever their form."""
    found = []
    for line in config.splitlines():
        name, _, url = line.strip().partition(b"=")
        if name.strip().lower() in (b"url", b"pushurl"):
            found.append(host_and_path(url.strip().strip(b'"').lower()))
    return found


def host_and_path(url: bytes) -> bytes:
    url = url.rpartition(b"://")[2].rpartition(b"@")[2].rstrip(b"/")
    if url.endswith(b".git"):
        url = url[:-4]
    host, _, path = url.replace(b":", b"/", 1).partition(b"/")
    port, _, rest = path.partition(b"/")
    if port.isdigit():
        path = rest
    return host + b"/" + path.strip(b"/")


def covers(pattern: bytes, text: bytes) -> bool:
    """Return whether a pattern means this thing, or one that this is below."""
    return matches(text, pattern) or matches(text, pattern + b"/*")


def matches(text: bytes, pattern: bytes) -> bool:
    """Return whether a pattern fits; `*` stands for anything. The work is bounded by the product
    of both lengths."""
    at = of = 0
    star, held = -1, 0
    while at < len(text):
        if of < len(pattern) and pattern[of] == 42:
            star, held = of, at
            of += 1
        elif of < len(pattern) and pattern[of] == text[at]:
            at, of = at + 1, of + 1
        elif star >= 0:
            held += 1
            at, of = held, star + 1
        else:
            return False
    return not pattern[of:].strip(b"*")


# -- git's folders -------------------------------------------------------------------------------


def git_folder(place: bytes) -> bytes:
    """Return the git folder of the repository around a place, the one that all its work trees
    share; nothing outside of one."""
    while place:
        try:
            posix.stat(place + b"/.git")
        except OSError:
            place = place.rpartition(b"/")[0]
            continue
        pointer = announce.content(place + b"/.git")
        if not pointer.startswith(b"gitdir:"):
            return place + b"/.git"
        own = pointer[7:].strip()
        return shared_folder(own if own[:1] == b"/" else place + b"/" + own)
    return b""


def shared_folder(own: bytes) -> bytes:
    """Return the git folder that a work tree's own one is part of."""
    shared: bytes = announce.content(own + b"/commondir").strip()
    if not shared:
        return own
    return shared if shared[:1] == b"/" else own + b"/" + shared
