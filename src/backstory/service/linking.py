"""Linking: which sessions each commit of a repository came from. One idempotent function over stored records and git.

`compute` looks and decides, and writes nothing: readers use it for commits that nobody has looked at yet. `apply` keeps
what it found, inside the ingest's transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from backstory.config import Settings
from backstory.git import history
from backstory.git.identity import git, has_commit, identify, still
from backstory.model.checkpoints import ChangedFile, Checkpoint, Note, Part, checkpoint_id
from backstory.model.sessions import Project
from backstory.store.checkpoints import Checkpoints
from backstory.store.journal import CheckpointEntry, Journal, NoCheckpointEntry, NoteEntry, OverrideEntry
from backstory.store.read import Reader
from backstory.store.schema import SEQ_BITS
from backstory.store.sqlite import fetch
from backstory.store.write import Writer
from backstory.story import annotate
from backstory.story.acts import Acts, Made, acts, merged
from backstory.story.checkpoints import Claim, Outline, continue_from, group_roots, outline, parts
from backstory.story.links import CommitFacts, Link, Linker, Seed

DAY = 86_400_000
REACH = 31 * DAY  # how long before a commit its lines may have been written, and a day for clocks
ALL = ("--exclude=refs/notes/*", "--exclude=refs/stash", "--all", "HEAD")
_SLACK = 5000
NO_SESSION = "no session kept here made this commit or wrote its lines"
BOT = "made by a bot"
NOT_THEN = "no session kept here was active before this commit"

Announce = Callable[[int], Callable[[int], None]]


class Repository(msgspec.Struct, frozen=True):
    """A project where it can be asked: a folder git answers in."""

    id: int
    project: Project
    folder: Path
    tops: list[str]  # its work trees: below them a path is known exactly
    places: list[str]  # every folder of it that sessions ran in, clones and former places among them

    @property
    def folders(self) -> list[str]:
        return list(dict.fromkeys([*self.tops, *self.places]))


class Outcome(msgspec.Struct):
    """What was found, not yet kept."""

    project: int
    looked: int = 0  # commits judged in this run
    saved: list[Checkpoint] = []  # new or changed
    removed: list[str] = []
    seen: list[tuple[str, int, int, str | None, str | None]] = []
    acts: list[tuple[int, int, bytes]] = []
    linked: list[tuple[int, int]] = []
    tips: list[str] | None = None  # where the refs were: what they reach need not be listed again
    said: list[OverrideEntry | NoteEntry] = []  # of commits that were rewritten; it goes for the new ones too


class _Row(msgspec.Struct, frozen=True, array_like=True):
    id: int
    agent: str
    session_id: str
    parent: str | None
    project_id: int | None
    started_at: int | None
    ended_at: int | None
    last_seq: int
    linked: int  # how much of it earlier runs have looked at


# -- keeping ---------------------------------------------------------------------------------------


def apply(db: apsw.Connection, journal: Journal, outcome: Outcome) -> None:
    """Inside the caller's transaction; the caller flushes the journal before it commits."""
    store = Checkpoints(db)
    for checkpoint in outcome.saved:
        store.save(outcome.project, checkpoint)
        journal.add(CheckpointEntry(checkpoint))
    for commit in outcome.removed:
        store.remove(commit)
        journal.add(NoCheckpointEntry(commit))
    for entry in outcome.said:
        store.override(entry) if isinstance(entry, OverrideEntry) else store.note(entry)
        journal.add(entry)
    store.saw(outcome.project, outcome.seen)
    if outcome.tips is not None:
        store.set_tips(outcome.project, outcome.tips)
    db.executemany("INSERT OR REPLACE INTO acts VALUES(?,?,?)", outcome.acts)
    db.executemany("INSERT OR REPLACE INTO linked VALUES(?,?,?)", [(outcome.project, *row) for row in outcome.linked])


def waiting(db: apsw.Connection) -> list[int]:
    """Projects with sessions or git hooks' signals that no run has looked at."""
    grown = fetch(
        db,
        "SELECT s.id, s.project_id FROM sessions s LEFT JOIN linked l ON l.project_id=s.project_id AND "
        "l.session_id=s.id WHERE s.project_id IS NOT NULL AND s.last_seq > coalesce(l.last_seq, -1)",
    )
    hooked = fetch(
        db,
        "SELECT p.project_id FROM signals g JOIN places p ON p.cwd=g.repository WHERE g.id > ? AND g.agent='git'",
        (Checkpoints(db).mark("signals"),),
    )
    found = {project for _, project in grown} | {row[0] for row in hooked}
    return sorted(found | _written_in(db, [session for session, _ in grown]))


def _written_in(db: apsw.Connection, sessions: list[int]) -> set[int]:
    """Projects these sessions wrote in, wherever they ran."""
    places = {**{p.path: number for number, p in Reader(db).projects() if p.path}, **Reader(db).places()}
    rows = fetch(
        db,
        "SELECT DISTINCT path FROM touches WHERE action='write' AND session_id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(sessions).decode(),),
    )
    folders = {path.rpartition("/")[0] for (path,) in rows}
    return {places[at] for folder in folders for at in _upwards(folder) if at in places}


def _upwards(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def link_waiting(db: apsw.Connection, journal: Journal, announce: Announce | None = None) -> int:
    """Every project something new was read of; returns how many commits were judged. Under the ingest lock."""
    newest = fetch(db, "SELECT coalesce(max(id), 0) FROM signals")[0][0]
    looked = sum(link_project(db, journal, project, announce).looked for project in waiting(db))
    store = Checkpoints(db)
    if newest > store.mark("signals"):
        with kept(db, journal):
            store.set_mark("signals", newest)
    return looked


def link_project(db: apsw.Connection, journal: Journal, project: int, announce: Announce | None = None) -> Outcome:
    found = repository_of(db, project)
    outcome = compute(db, found, announce=announce) if found else Outcome(project, linked=_unlinkable(db, project))
    with kept(db, journal):
        apply(db, journal, outcome)
    return outcome


@contextmanager
def kept(db: apsw.Connection, journal: Journal) -> Iterator[None]:
    """One transaction: in the journal before the database says so."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        journal.flush()
        db.execute("COMMIT")
    except BaseException:
        journal.forget_pending()
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _unlinkable(db: apsw.Connection, project: int) -> list[tuple[int, int]]:
    """Nothing to ask git about: the folder is gone, or was never a repository."""
    return [(row[0], row[1]) for row in fetch(db, "SELECT id, last_seq FROM sessions WHERE project_id=?", (project,))]


def publish(settings: Settings, db: apsw.Connection) -> None:
    """The list git's checkout hook looks in: one line per story. Only where `backstory init` made a place for it."""
    folder = settings.home / "hook"
    if not folder.is_dir():
        return
    rows = fetch(
        db, "SELECT sha, id, coalesce(annotation ->> 'title', subject) FROM checkpoints WHERE evidence IS NOT NULL"
    )
    lines = [f"{sha}\t{ident}\t{_line(title)}\n" for sha, ident, title in rows] if settings.checkout_line else []
    fresh = folder / "stories.new"
    fresh.write_text("".join(lines), encoding="utf-8")
    fresh.replace(folder / "stories")


def _line(title: str) -> str:
    """A title as a terminal may show it: no control characters."""
    return "".join(c if c.isprintable() else " " for c in title)


# -- where -----------------------------------------------------------------------------------------


def repository_of(db: apsw.Connection, project: int) -> Repository | None:
    """A folder of the project that is still there and still that project."""
    known = dict(Reader(db).projects())
    if project not in known:
        return None
    places = [cwd for cwd, number in Reader(db).places().items() if number == project]
    for folder in dict.fromkeys(path for path in (known[project].path, *places) if path):
        same = still(folder, known[project]) or identify(folder).identity == known[project].identity
        if same and Path(folder).is_dir():
            return _repository(project, known[project], Path(folder), places)
    return None


def repository_at(db: apsw.Connection, folder: Path) -> Repository | None:
    """The repository a folder is in; of number 0 if nothing is known of it but what sessions elsewhere wrote there."""
    known = _placed(db, folder)
    project = known[1] if known else identify(str(folder))
    if project.evidence == "path":
        return None
    known = known or Checkpoints(db).project(project.identity) or _formerly(db, project)
    if known is None:
        found = _repository(0, project, folder, [])
        return found if _wrote_below(db, found.folders) else None
    places = [cwd for cwd, number in Reader(db).places().items() if number == known[0]]
    return _repository(known[0], known[1], folder, places)


def _placed(db: apsw.Connection, folder: Path) -> tuple[int, Project] | None:
    """The project the folder was known for, if it still is that."""
    writer = Writer(db)
    number = writer.place(str(folder))
    project = writer.project(number) if number is not None else None
    return (number, project) if number is not None and project and still(str(folder), project) else None


def _wrote_below(db: apsw.Connection, folders: Iterable[str]) -> set[int]:
    """Sessions that wrote below one of these folders."""
    return {
        row[0]
        for folder in folders
        for row in fetch(
            db,
            "SELECT DISTINCT session_id FROM touches WHERE action='write' AND path >= ? AND path < ?",
            (folder.rstrip("/") + "/", folder.rstrip("/") + "0"),
        )
    }


def _formerly(db: apsw.Connection, project: Project) -> tuple[int, Project] | None:
    """The same repository before it had this remote or this root commit, if nothing was read of it since."""
    for identity, root in Writer(db).former(project):
        if project.path and (root is None or has_commit(project.path, root)):
            return Checkpoints(db).project(identity)
    return None


def lost(folder: Path, shas: Iterable[str]) -> list[history.Commit]:
    """What these commits reach and no ref does."""
    names = list(shas)
    return history.commits(folder, ["--not", *ALL[:-1], "^HEAD", *names]) if names else []


def _repository(number: int, project: Project, folder: Path, places: list[str]) -> Repository:
    trees = (git(folder, "worktree", "list", "--porcelain") or "").splitlines()
    tops = [line.removeprefix("worktree ") for line in trees if line.startswith("worktree ")]
    if top := git(folder, "rev-parse", "--show-toplevel"):  # of a submodule the list names its git folder only
        tops.append(top)
    if project.path:
        tops.append(project.path)
    return Repository(number, project, folder, list(dict.fromkeys(tops)), places)


# -- deciding --------------------------------------------------------------------------------------


def _last(superseded: dict[str, str], commit: str) -> str:
    """What stands in the place of a commit that was rewritten, perhaps again and again."""
    seen = {commit}
    while (commit := superseded.get(commit, "")) in superseded and commit not in seen:
        seen.add(commit)
    return commit


def _about(entry: OverrideEntry | NoteEntry) -> tuple[str, ...]:
    """Two entries about the same thing: the later one counts."""
    if isinstance(entry, OverrideEntry):
        return entry.commit, entry.agent, entry.session_id
    return entry.commit, str(entry.at)


def _names(made: Made, commit: history.Commit) -> bool:
    return commit.subject in made.command or any(commit.sha.startswith(sha) for sha, _ in made.printed)


def compute(
    db: apsw.Connection,
    repository: Repository,
    *,
    only: Iterable[str] | None = None,
    again: bool = False,
    announce: Announce | None = None,
) -> Outcome:
    """Judge what is new: commits nobody looked at, and those that sessions read since may belong to.

    `only` names commits to judge (again); `again` judges all of them.
    """
    return _Run(db, repository).run(set(only) if only is not None else None, again, announce)


class _Run:
    def __init__(self, db: apsw.Connection, repository: Repository) -> None:
        self.db = db
        self.repository = repository
        self.store = Checkpoints(db)
        self.outcome = Outcome(repository.id, saved=[], removed=[], seen=[], acts=[], linked=[], said=[])
        self.rows = self._candidates()
        self.by_name = {(row.agent, row.session_id): row for row in self.rows}
        self._acts: dict[int, Acts] = {}
        self._outlines: dict[int, Outline] = {}
        self._unkept: dict[str, str] = {}  # commits that ran in a session we have nothing of
        self._lost: set[str] = set()  # commits with a story that no ref reaches any more, since the last look

    def run(self, only: set[str] | None, again: bool, announce: Announce | None) -> Outcome:
        commits = self._commits(only, again)
        todo = set(commits) if again else self._todo(commits)
        grown = {self._main(row).id for row in self.rows if row.last_seq > row.linked}
        facts: dict[str, CommitFacts] = {}
        links: list[Link] = []
        superseded: dict[str, str] = {}
        judged = todo if again else self._possible({sha: commits[sha] for sha in todo})
        if judged:
            progress = announce(len(judged)) if announce else None
            facts, links, superseded = self._infer(commits, judged, progress)
        self._assemble({sha: commits[sha] for sha in todo}, facts, links, superseded, grown)
        self.outcome.looked = len(judged)
        if only is None:
            self.outcome.linked = [(row.id, row.last_seq) for row in self.rows]
            self.outcome.tips = self._tips()
        return self.outcome

    # -- sessions --------------------------------------------------------------------------------

    def _candidates(self) -> list[_Row]:
        """Sessions of the project, others that wrote below its folders, and the subagents of both."""
        wrote = _wrote_below(self.db, self.repository.folders)
        sql = (
            "SELECT s.id, s.agent, s.session_id, s.parent, s.project_id, s.started_at, s.ended_at, s.last_seq, "
            "coalesce(l.last_seq, -1) FROM sessions s LEFT JOIN linked l ON l.session_id=s.id AND l.project_id=? "
        )
        number = self.repository.id
        listed = msgspec.json.encode(sorted(wrote)).decode()
        rows = fetch(
            self.db,
            sql + "WHERE s.project_id=? OR s.id IN (SELECT value FROM json_each(?)) OR s.session_id IN "
            "(SELECT parent FROM sessions WHERE id IN (SELECT value FROM json_each(?)))",
            (number, number, listed, listed),
        )
        return [_Row(*row) for row in rows]

    def _main(self, row: _Row) -> _Row:
        """The session a subagent worked for; itself if it is none, or if its parent is not here."""
        seen = {row.id}
        while row.parent is not None and (above := self.by_name.get((row.agent, row.parent))) and above.id not in seen:
            row = above
            seen.add(row.id)
        return row

    def _acts_of(self, row: _Row) -> Acts:
        found = self._acts.get(row.id)
        if found is None:
            kept = fetch(self.db, "SELECT last_seq, body FROM acts WHERE session_id=?", (row.id,))
            last, body = kept[0] if kept else (0, None)
            found = msgspec.msgpack.decode(body, type=Acts) if body is not None else Acts()
            if last < row.last_seq:
                found = acts(Reader(self.db).events(row.id, last + 1), found)
                self.outcome.acts.append((row.id, row.last_seq, msgspec.msgpack.encode(found)))
            self._acts[row.id] = found
        return found

    def _outline(self, session: int) -> Outline:
        if session not in self._outlines:
            base = session << SEQ_BITS
            rows: Any = self.db.execute(
                "SELECT id - ?, turn, kind, actor, created_at FROM events WHERE id BETWEEN ? AND ?",
                (base, base, base + (1 << SEQ_BITS) - 1),
            )
            self._outlines[session] = outline(rows)
        return self._outlines[session]

    def _inherited(self, session: int, claims: list[Claim]) -> int:
        """Where that part of a fork ends which it was given by another session, and which has its story there."""
        origins = fetch(
            self.db,
            "SELECT o.id FROM sessions s JOIN sessions o ON o.session_id=s.forked_from WHERE s.id=?1 UNION "
            "SELECT b.session_id FROM usage a JOIN usage b ON b.key=a.key AND b.counts WHERE a.session_id=?1 AND NOT "
            "a.counts",  # not every fork says that it is one, but what was paid for is not paid for again
            (session,),
        )
        own = self._spoken(session) if origins else {}
        ends = [0]
        for (origin,) in origins:
            copies = {seq: own[line] for line, seq in self._spoken(origin).items() if line in own}
            cuts = {row[0] for row in fetch(self.db, "SELECT cut FROM parts WHERE session_id=?", (origin,))}
            cuts |= {claim.cut for claim in claims if claim.session == origin}
            if told := [cut for cut in cuts if cut <= max(copies, default=0)]:
                end = self._outline(origin).turn_end(max(told))
                ends += [copy for seq, copy in copies.items() if seq <= end]
        return max(ends)

    def _spoken(self, session: int) -> dict[tuple[int, str, str], int]:
        """By what an event is known again in a copy."""
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT created_at, kind, text, id - ? FROM events WHERE id BETWEEN ? AND ? AND created_at IS NOT NULL AND "
            "kind IN ('user.prompt', 'assistant.message', 'tool.call', 'tool.result', 'turn.completed')",
            (base, base, base + (1 << SEQ_BITS) - 1),
        )
        return {(at, kind, text): seq for at, kind, text, seq in rows}

    def _sessions(self, since: int) -> tuple[dict[int, Acts], set[int]]:
        """Acts of main sessions, those of their subagents among them; and which of them ran elsewhere."""
        groups: dict[int, list[Acts]] = {}
        foreign: set[int] = set()
        for row in self.rows:
            if row.ended_at is not None and row.ended_at < since:
                continue
            main = self._main(row)
            own = self._acts_of(row)
            if main.id != row.id:
                shape = self._outline(main.id)
                own = own.placed(shape.at)
            groups.setdefault(main.id, []).append(own)
            if main.project_id != self.repository.id:
                foreign.add(main.id)
        return {number: merged(own) for number, own in groups.items()}, foreign

    # -- commits ---------------------------------------------------------------------------------

    def _commits(self, only: set[str] | None, again: bool) -> dict[str, history.Commit]:
        """Those to look at: named ones; else all that a session may have a part in, or what is new among them."""
        folder = self.repository.folder
        if only is not None:
            found = history.commits(folder, ["--no-walk=unsorted", *sorted(only)])
            return {commit.sha: commit for commit in found}
        starts = [row.started_at for row in self.rows if row.started_at is not None]
        if not starts or not history.head(folder):
            return {}
        before = self.store.tips(self.repository.id)
        if again or before is None:
            kept = history.resolve(folder, self.store.live(self.repository.id)).values()
            found = history.commits(folder, ALL, since=min(starts) - DAY)
        else:
            kept = history.resolve(folder, before).values()  # a tip that is gone says nothing
            found = history.commits(folder, [*ALL, *(f"^{sha}" for sha in kept)])
            if (since := self._news_since()) is not None:
                found += history.commits(folder, ALL, since=since - _SLACK)
        gone = self._without_ref(kept)
        if gone and not again and before is not None:  # one of those since may have taken their place, looked at or not
            found += history.commits(folder, ALL, since=min(commit.committed_at for commit in gone))
        known = {commit.sha: commit for commit in (*found, *gone)}
        rows = [row for row in self.rows if again or before is None or row.linked < row.last_seq]
        return {**known, **{commit.sha: commit for commit in self._unreachable(set(known), rows)}}

    def _without_ref(self, shas: Iterable[str]) -> list[history.Commit]:
        """Of what these reach, commits whose story has no ref any more, and nothing in its place yet."""
        gone = {commit.sha: commit for commit in lost(self.repository.folder, shas)}
        stored = self.store.of_commits(gone)
        self._lost = {sha for sha, known in stored.items() if known.parts and not known.superseded_by}
        return [gone[sha] for sha in self._lost]

    def _possible(self, commits: dict[str, history.Commit]) -> set[str]:
        """Those that a session may have a part in: made since the first began, or inside one by a hook's account."""
        begun = min((row.started_at for row in self.rows if row.started_at is not None), default=None)
        told = fetch(
            self.db,
            "SELECT sha FROM signals WHERE session_id IS NOT NULL AND sha IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(list(commits)).decode(),),
        )
        later = {sha for sha, c in commits.items() if begun is not None and c.committed_at >= begun - DAY}
        return later | {row[0] for row in told}

    def _tips(self) -> list[str]:
        listed = git(self.repository.folder, "rev-parse", *ALL) or ""
        return sorted(set(listed.split()))

    def _unreachable(self, known: set[str], rows: list[_Row]) -> list[history.Commit]:
        """Commits that sessions printed or hooks saw and no ref reaches any more, as far as git still has them."""
        printed = {sha for row in rows for made in self._acts_of(row).made for sha, _ in made.printed if len(sha) >= 7}
        hooked = {
            row[0]
            for row in fetch(
                self.db,
                "SELECT DISTINCT sha FROM signals WHERE sha IS NOT NULL AND repository IN (SELECT value FROM "
                "json_each(?)) AND sha NOT IN (SELECT sha FROM commits)",
                (msgspec.json.encode(self.repository.folders).decode(),),
            )
        }
        begins = {sha[:7] for sha in known}
        missing = [sha for sha in (*printed, *hooked, *self._rewritten(known)) if sha[:7] not in begins]
        shas = sorted(set(history.resolve(self.repository.folder, missing).values()) - known) if missing else []
        return history.commits(self.repository.folder, ["--no-walk=unsorted", *shas]) if shas else []

    def _rewritten(self, known: set[str]) -> set[str]:
        """All that these commits were before: what is known of the first of them goes for the last."""
        found: set[str] = set()
        for old, new in reversed(self._pairs()):
            if new in known or new in found:
                found.add(old)
        return found - known

    def _todo(self, commits: dict[str, history.Commit]) -> set[str]:
        """What nobody looked at, and what a session did something before that nobody had read then."""
        todo = set(commits) - set(self.store.seen(commits))
        if self._lost:
            todo |= set(commits) - self._lost  # one of them may have taken their place
        if (since := self._news_since()) is not None:
            todo |= {sha for sha, commit in commits.items() if commit.committed_at >= since - _SLACK}
        return todo

    def _news_since(self) -> int | None:
        """The time of the earliest thing a session did that no run has looked at."""
        times = [
            act.at for row in self.rows if row.linked < row.last_seq for act in self._acts_of(row).since(row.linked)
        ]
        times += [row.started_at for row in self.rows if row.linked < 0 and row.started_at is not None]
        return min(times) if times else None

    def _facts(self, commits: Iterable[history.Commit], progress: Callable[[int], None] | None) -> list[CommitFacts]:
        listed = list(commits)
        found: dict[str, list[history.Change]] = {}
        for sha, changed in history.changes(self.repository.folder, (c.sha for c in listed if not c.is_merge)):
            found[sha] = changed
            if progress:
                progress(1)
        return [CommitFacts.of(commit, found.get(commit.sha, [])) for commit in listed]

    # -- links -----------------------------------------------------------------------------------

    def _infer(
        self, commits: dict[str, history.Commit], todo: set[str], progress: Callable[[int], None] | None
    ) -> tuple[dict[str, CommitFacts], list[Link], dict[str, str]]:
        since = min(min(commits[sha].authored_at, commits[sha].committed_at) for sha in todo) - REACH
        sessions, foreign = self._sessions(since)
        linker = Linker(sessions, foreign=foreign, folders=self.repository.tops)
        judged = {f.sha: f for f in self._facts((commits[sha] for sha in commits if sha in todo), progress)}
        horizon = linker.horizon(judged.values())
        earlier: dict[str, history.Commit] = {}
        if horizon is not None:
            earlier = {c.sha: c for c in history.commits(self.repository.folder, ALL, since=horizon)}
        earlier |= commits
        before = {f.sha: f for f in self._facts((c for s, c in earlier.items() if s not in todo), None)}
        order = [*before.values(), *judged.values()]
        seeds = self._seeds(todo, judged.values())
        since = min([since, *(seed.authored_at for seed in seeds)])
        reachable = {c.sha for c in history.commits(self.repository.folder, ALL, since=since)}
        links, superseded = linker.link(
            order,
            todo=todo,
            hooks=self._hooks(todo, commits, sessions),
            pairs=[(old, new) for old, new in self._pairs() if new in commits],
            seeds=seeds,
            unreachable={sha for sha in (*commits, *(seed.sha for seed in seeds)) if sha not in reachable},
        )
        return judged, links, superseded

    def _hooks(
        self, todo: set[str], commits: dict[str, history.Commit], sessions: dict[int, Acts]
    ) -> dict[str, list[tuple[int, int, bool]]]:
        """Commits that ran inside an agent's process: session, the event to cut at, whether it only rewrote."""
        found: dict[str, list[tuple[int, int, bool]]] = {}
        by_git = self._by_git(todo)
        known = {row[0] for row in by_git}  # agents also see what others committed; where git told itself, that counts
        by_agent = [row for row in self._by_agent(todo, commits) if row[0] not in known]
        for sha, agent, session_id, data, at in [*(row for row in by_git if row[2]), *by_agent]:
            row = self._row(agent, session_id)
            if row is None:
                self._unkept[sha] = f"made in {agent} session {session_id[:8]}, whose transcript is not kept"
                continue
            when = commits[sha].committed_at
            # The hook ran after the call began: of several within a second or two, the one that names the commit, else
            # the last one begun by then.
            spans = [
                m
                for m in (sessions.get(row.id) or self._acts_of(row)).made
                if m.called_at <= max(at, when) and when <= m.done_at + 1000
            ]
            named = [m for m in spans if _names(m, commits[sha])]
            cut = max(m.seq for m in named or spans) if spans else self._outline(row.id).at(when + 999)
            found.setdefault(sha, []).append((row.id, cut, bool(msgspec.json.decode(data).get("rebasing"))))
        return found

    def _by_git(self, todo: set[str]) -> list[tuple[Any, ...]]:
        """What git's own hook told: commit, agent and session if there was one around it, facts, when."""
        return fetch(
            self.db,
            "SELECT sha, session_agent, session_id, data, at FROM signals WHERE event='post-commit' AND sha IN "
            "(SELECT value FROM json_each(?)) ORDER BY at",
            (msgspec.json.encode(sorted(todo)).decode(),),
        )

    def _by_agent(self, todo: set[str], commits: dict[str, history.Commit]) -> Iterator[tuple[Any, ...]]:
        """The same from the agents' hooks, which name a commit right after the command that made it."""
        begins = {sha[:7]: sha for sha in todo}
        rows = fetch(
            self.db,
            "SELECT session_agent, session_id, data, at FROM signals WHERE json_extract(data, '$.made') IS NOT NULL "
            "AND session_id IS NOT NULL AND at >= ? ORDER BY at",
            (min(commits[sha].committed_at for sha in todo) - _SLACK,),
        )
        for agent, session_id, data, at in rows:
            for name in msgspec.json.decode(data)["made"]:
                sha = begins.get(name)
                if sha and commits[sha].committed_at - _SLACK <= at <= commits[sha].committed_at + DAY:
                    yield sha, agent, session_id, data, at

    def _row(self, agent: str, session_id: str) -> _Row | None:
        """A main session by name; it need not be of this project."""
        row = self.by_name.get((agent, session_id))
        if row is None:
            rows = fetch(
                self.db,
                "SELECT id, agent, session_id, parent, project_id, started_at, ended_at, last_seq, -1 FROM sessions "
                "WHERE agent=? AND session_id=?",
                (agent, session_id),
            )
            if not rows:
                return None
            row = _Row(*rows[0])
            self.rows.append(row)
            self.by_name[agent, session_id] = row
        return self._main(row)

    def _pairs(self) -> list[tuple[str, str]]:
        """What post-rewrite told: old and new."""
        rows = fetch(self.db, "SELECT data FROM signals WHERE event='post-rewrite' ORDER BY at, id")
        return [(old, new) for row in rows for old, new in msgspec.json.decode(row[0]).get("pairs", [])]

    def _seeds(self, todo: set[str], judged: Iterable[CommitFacts]) -> list[Seed]:
        """Links of earlier runs: a commit that is gone may live on in a copy, of the same author date or change."""
        since = min(commit.authored_at for commit in judged) - _SLACK
        patches = [commit.patch_id for commit in judged if commit.patch_id]
        found = []
        alike = self.store.like(self.repository.id, since, patches)
        for sha, known in {**alike, **self.store.of_commits(self._lost)}.items():
            if sha in todo or not known.parts:
                continue
            links = [
                Link(sha, row.id, p.evidence, p.confidence, p.role, p.cut, p.lines, p.share or 0.0, p.why)
                for p in known.parts
                if (row := self._row(p.agent, p.session_id))
            ]
            found.append(Seed(sha, known.subject, known.authored_at, known.patch_id, links))
        return found

    # -- checkpoints -----------------------------------------------------------------------------

    def _assemble(
        self,
        todo: dict[str, history.Commit],
        facts: dict[str, CommitFacts],
        links: list[Link],
        superseded: dict[str, str],
        grown: set[int],
    ) -> None:
        proved = [link for link in links if link.evidence != "nearby" and not todo[link.commit].is_merge]
        self._pass_on(superseded)
        proved = self._overridden(todo, proved)
        touched = {link.session for link in proved} | grown
        touched |= {
            row.id
            for known in self.store.of_commits([*todo, *superseded]).values()
            for part in known.parts
            if (row := self._row(part.agent, part.session_id))
        }
        stored = self._component(touched)
        superseded = {**{sha: c.superseded_by for sha, c in stored.items() if c.superseded_by}, **superseded}
        claims = [self._claim(link, todo[link.commit], superseded) for link in proved]
        claims += [
            claim for sha, known in stored.items() if sha not in todo for claim in self._claims(known, superseded)
        ]
        shapes = {claim.session: self._outline(claim.session) for claim in claims}
        for session, shape in shapes.items():
            shape.inherited = self._inherited(session, claims)
        found = parts(claims, shapes)
        roots = group_roots(found)
        kept = {**{sha: known.parts for sha, known in stored.items()}, **found}
        merges = {sha: commit for sha, commit in todo.items() if commit.is_merge}
        stored |= self.store.of_commits(merges)
        for sha in [*found, *(sha for sha in merges if sha not in found)]:
            before = stored.get(sha)
            own = continue_from(found.get(sha, []), self._parents(todo, before, sha, kept))
            made = self._checkpoint(sha, todo.get(sha), facts.get(sha), before, own, roots, superseded.get(sha))
            if made != before:
                self.outcome.saved.append(made)
        self.outcome.removed = [sha for sha in stored if sha in todo and sha not in found and sha not in merges]
        self._saw(todo, facts, found, links)

    def _pass_on(self, superseded: dict[str, str]) -> None:
        """What was said of a commit goes for the one that took its place, unless more was said of that."""
        heirs = {old: _last(superseded, old) for old in superseded}
        known = {_about(entry) for entry in self.store.said(set(heirs.values()))}
        for entry in self.store.said(heirs):
            again = msgspec.structs.replace(entry, commit=heirs[entry.commit])
            if _about(again) not in known:
                known.add(_about(again))
                self.outcome.said.append(again)

    def _noted(self, sha: str) -> tuple[str, Note] | None:
        passed = ((e.by, e.note) for e in self.outcome.said if isinstance(e, NoteEntry) and e.commit == sha)
        return self.store.notes([sha]).get(sha) or next(passed, None)

    def _overridden(self, todo: dict[str, history.Commit], links: list[Link]) -> list[Link]:
        """A person's word counts more than any evidence."""
        overrides = self.store.overrides(todo)
        for entry in self.outcome.said:
            if isinstance(entry, OverrideEntry) and entry.commit in todo:
                overrides.setdefault(entry.commit, []).append((entry.agent, entry.session_id, entry.action))
        for sha, said in overrides.items():
            for agent, session_id, action in said:
                row = self._row(agent, session_id)
                if row is None:
                    continue
                known = [link for link in links if link.commit == sha and link.session == row.id]
                links = [link for link in links if link not in known]
                if action == "link":
                    cut = known[0].seq if known else self._outline(row.id).at(todo[sha].committed_at + 999)
                    links.append(Link(sha, row.id, "person", "high", "made", cut, why="linked by a person"))
        return links

    def _component(self, sessions: set[int]) -> dict[str, Checkpoint]:
        """Checkpoints of these sessions, and of all that share a commit with them."""
        known: set[int] = set()
        found: dict[str, Checkpoint] = {}
        while fresh := sessions - known:
            known |= fresh
            found.update(self.store.of_sessions(fresh))
            names = {(part.agent, part.session_id) for c in found.values() for part in c.parts}
            sessions = known | {row.id for name in names if (row := self._row(*name))}
        return found

    def _claim(self, link: Link, commit: history.Commit, superseded: dict[str, str]) -> Claim:
        row = next(row for row in self.rows if row.id == link.session)
        return Claim(
            link.commit,
            link.session,
            row.agent,
            row.session_id,
            link.evidence,
            link.confidence,
            link.role,
            link.seq,
            commit.committed_at,
            link.lines,
            link.share or None,
            link.why,
            link.commit in superseded,
            _last(superseded, link.commit),
            tuple(commit.parents),
        )

    def _claims(self, known: Checkpoint, superseded: dict[str, str]) -> Iterator[Claim]:
        for part in known.parts:
            if row := self._row(part.agent, part.session_id):
                yield Claim(
                    known.commit,
                    row.id,
                    part.agent,
                    part.session_id,
                    part.evidence,
                    part.confidence,
                    part.role,
                    part.cut,
                    known.committed_at,
                    part.lines,
                    part.share,
                    part.why,
                    known.commit in superseded,
                    _last(superseded, known.commit),
                    tuple(known.parents),
                )

    def _parents(
        self, todo: dict[str, history.Commit], before: Checkpoint | None, sha: str, kept: dict[str, list[Part]]
    ) -> Iterator[list[Part]]:
        above: Iterable[str] = todo[sha].parents if sha in todo else before.parents if before else ()
        for parent in above:
            if parent in kept:
                yield kept[parent]
            elif known := self.store.of_commits([parent]).get(parent):
                yield known.parts

    def _checkpoint(
        self,
        sha: str,
        commit: history.Commit | None,
        facts: CommitFacts | None,
        before: Checkpoint | None,
        own: list[Part],
        roots: dict[str, str],
        superseded_by: str | None,
    ) -> Checkpoint:
        if commit is None:
            assert before is not None
            subject, body, files = before.subject, "", before.files
        else:
            subject, body = commit.subject, commit.body
            files = [ChangedFile(file.path, file.plus, file.minus) for file in facts.files] if facts else []
        same = before is not None and [(p.first, p.last) for p in before.parts] == [(p.first, p.last) for p in own]
        noted = self._noted(sha)
        annotation = before.annotation if before is not None and same and commit is None and not noted else None
        if own and annotation is None:
            annotation = self._annotation(sha, subject, body, files, own[0])
        base = commit or before
        assert base is not None
        return Checkpoint(
            commit=sha,
            project=self.repository.project.identity,
            subject=subject,
            author=base.author,
            email=base.email,
            authored_at=base.authored_at,
            committed_at=base.committed_at,
            parents=list(base.parents),
            is_merge=len(base.parents) > 1,
            patch_id=facts.patch_id if facts else before.patch_id if before else None,
            files=files,
            parts=own,
            evidence=own[0].evidence if own else None,
            confidence=own[0].confidence if own else None,
            group_root=roots.get(sha, checkpoint_id(sha)),
            superseded_by=superseded_by,
            annotation=annotation,
        )

    def _annotation(self, sha: str, subject: str, body: str, files: list[ChangedFile], part: Part) -> Any:
        row = self._row(part.agent, part.session_id)
        assert row is not None
        asked = [seq for seq in self._outline(row.id).prompts if seq <= part.last]
        inside = [seq for seq in asked if seq >= part.first] or asked[-1:]
        reader = Reader(self.db)
        prompts = [event.text for seq in inside[:1] for event in reader.events(row.id, seq, seq)]
        derived = annotate.derive(subject, body, files, prompts, reader.events(row.id, part.first, part.last))
        noted = self._noted(sha)
        return annotate.noted(derived, *noted) if noted else derived

    def _saw(
        self,
        todo: dict[str, history.Commit],
        facts: dict[str, CommitFacts],
        found: dict[str, list[Part]],
        links: list[Link],
    ) -> None:
        hints: dict[str, list[dict[str, Any]]] = {}
        for link in links:
            if link.evidence == "nearby":
                row = next(row for row in self.rows if row.id == link.session)
                hint = {"agent": row.agent, "session_id": row.session_id, "why": link.why}
                hints.setdefault(link.commit, []).append(hint)
        starts = [row.started_at for row in self.rows if row.started_at is not None]
        for sha, commit in todo.items():
            reason = None
            if sha not in found and not commit.is_merge:
                then = starts and min(starts) <= commit.committed_at + _SLACK
                reason = self._unkept.get(sha) or (NO_SESSION if then else NOT_THEN)
                if sha in facts and facts[sha].is_bot:
                    reason = BOT
            nearby = msgspec.json.encode(hints[sha]).decode() if sha in hints and sha not in found else None
            self.outcome.seen.append((sha, commit.authored_at, commit.committed_at, reason, nearby))
