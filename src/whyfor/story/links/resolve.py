"""Judging: which sessions each commit of a repository came from. One idempotent function over
stored records and git.

It looks and decides, and writes nothing: readers use it for commits that nobody has looked at
yet, linking keeps what it found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cached_property

import msgspec

from whyfor.git import history
from whyfor.git.identity import local_person
from whyfor.git.run import ask
from whyfor.model.checkpoints import NOT_THEN, Checkpoint
from whyfor.model.paths import to_text
from whyfor.model.progress import Announce
from whyfor.model.sessions import CandidateSession
from whyfor.model.signals import CommitSignal
from whyfor.model.times import DAY
from whyfor.store.pauses import PauseSet
from whyfor.store.protocol import Store
from whyfor.store.tombstones import STORY
from whyfor.story.links.activity import CommitCommand, SessionActivity
from whyfor.story.links.ancestry import Ancestry
from whyfor.story.links.assemble import Assembly, LinkOutcome, known_links
from whyfor.story.links.by_content import PathSpans
from whyfor.story.links.candidates import Candidates
from whyfor.story.links.commits import CommitFacts
from whyfor.story.links.infer import WROTE_LINES, Link, Linker, PriorLink
from whyfor.story.links.paths import Places
from whyfor.story.links.people import People, home_of
from whyfor.story.links.probe import LineProbe
from whyfor.story.links.reach import Reach, SessionTimes
from whyfor.story.links.versions import MadeCommits, Paths, SharedFiles
from whyfor.story.repositories import ALL, Repository, lost

REACH = 31 * DAY  # how long before a commit its lines may have been written, and a day for clocks
_SLACK = 5000
_BESIDE = 2000  # commits with a story that a new one may be a squash of
_LARGE = 8  # files of a commit that is looked through before it is read
_FEW = 0.25  # of a commit's files: to read so many of them alone costs as much as to read all
_COUNTED = re.compile(r"\d+ of \d+ (?:added|changed) lines")
PAUSED = "capture was paused when it was made"


def compute(
    store: Store,
    repository: Repository,
    *,
    only: Iterable[str] | None = None,
    again: bool = False,
    announce: Announce | None = None,
) -> LinkOutcome:
    """Judge what is new: commits nobody looked at, and those that sessions read since may belong
    to.

    `only` names commits to judge (again); `again` judges all of them.
    """
    return _Run(store, repository).run(set(only) if only is not None else None, again, announce)


class _Run:
    def __init__(self, store: Store, repository: Repository) -> None:
        self.store = store
        self.repository = repository
        self.sessions = Candidates(store, repository)
        self._unkept: dict[str, str] = {}  # why commits have no story, if there is more to say
        # commits with a story that no ref reaches any more, since the last look
        self._lost: set[str] = set()
        # what sessions did that matters to the commits, and which of them ran elsewhere
        self._acts: tuple[dict[int, SessionActivity], set[int]] | None = None
        self._reach = Reach()
        # of commits, as far as asked for; with git's letters
        self._paths: dict[str, dict[str, str]] = {}
        # of commits to judge, files that may show whether a session has a part in them at all
        self._telltale: dict[str, SharedFiles] = {}
        self._read = 0  # commits all of whose changes were read

    def run(self, only: set[str] | None, again: bool, announce: Announce | None) -> LinkOutcome:
        commits = self._commits(only, again)
        todo = set(commits) if again else self._todo(commits)
        grown = {
            self.sessions.main(row).id for row in self.sessions.rows if row.last_seq > row.linked
        }
        facts: dict[str, CommitFacts] = {}
        links: list[Link] = []
        superseded: dict[str, str] = {}
        named = again and only is not None
        judged = todo if named else self._within_reach(commits, todo)
        if judged:
            progress = announce(len(judged)) if announce else None
            facts, links, superseded = self._infer(commits, judged, progress)
        paused = self._paused(commits, todo, judged)
        links = [link for link in links if not paused.get(link.commit)]
        self._unkept.update(dict.fromkeys(paused, PAUSED))
        forgotten = self.store.forget.reasons()
        links = [link for link in links if forgotten.get(link.commit) != STORY]
        self._unkept.update(forgotten)
        assembly = Assembly(self.sessions, self._unkept)
        assembly.assemble({sha: commits[sha] for sha in todo}, facts, links, superseded, grown)
        outcome = assembly.outcome
        outcome.looked = len(judged)
        outcome.read = self._read
        outcome.acts = self.sessions.fresh
        if only is None:
            outcome.linked = [(row.id, row.last_seq) for row in self.sessions.rows]
            outcome.tips = self._tips()
        return outcome

    # -- which commits ---------------------------------------------------------------------------

    def _commits(self, only: set[str] | None, again: bool) -> dict[str, history.Commit]:
        """Those to look at: named ones; else all that a session may have a part in, or what is
        new among them."""
        folder = self.repository.folder
        if only is not None:
            return self._read_commits(sorted(only))
        begun = self.sessions.begun
        if begun is None or not history.head_commit(folder):
            return {}
        before = self.store.links.tips(self.repository.id)
        if again or before is None:
            kept = history.resolve_commits(
                folder, self.store.checkpoints.live(self.repository.id)
            ).values()
            found = history.commits(folder, ALL, since=begun - DAY)
        else:
            # a tip that is gone says nothing
            kept = history.resolve_commits(folder, before).values()
            found = history.commits(folder, [*ALL, *(f"^{sha}" for sha in kept)])
            if (since := self.sessions.news_since) is not None:
                found += history.commits(folder, ALL, since=since - _SLACK)
        gone = self._without_ref(kept)
        # one of those since may have taken their place, looked at or not
        if gone and not again and before is not None:
            found += history.commits(folder, ALL, since=min(commit.committed_at for commit in gone))
        known = {commit.sha: commit for commit in (*found, *gone)}
        rows = [
            row
            for row in self.sessions.rows
            if again or before is None or row.linked < row.last_seq
        ]
        return {**known, **{commit.sha: commit for commit in self._unreachable(set(known), rows)}}

    def _without_ref(self, shas: Iterable[str]) -> list[history.Commit]:
        """Of what these reach, commits whose story has no ref any more, and nothing in its place
        yet."""
        gone = {commit.sha: commit for commit in lost(self.repository.folder, shas)}
        stored = self.store.checkpoints.of_commits(gone)
        self._lost = {
            sha for sha, known in stored.items() if known.parts and not known.superseded_by
        }
        return [gone[sha] for sha in self._lost]

    def _within_reach(self, commits: dict[str, history.Commit], todo: set[str]) -> set[str]:
        """Those that a session may have a part in, by times and names; a diff is read of no
        other."""
        told = set(self.store.checkpoints.known(todo)) | self.store.signals.made_in_session(todo)
        told |= {new for _, new in self._pairs} & todo
        dates = self.store.checkpoints.author_dates(self.repository.id)  # a copy keeps its date
        times = SessionTimes(self.sessions.rows)
        timely = set(told)
        for sha in todo - told:
            if commits[sha].authored_at in dates or times.fit(commits[sha]):
                timely.add(sha)
        if not timely:
            return set()
        told |= self.store.checkpoints.overrides(timely).keys()
        reach = self._reach_of(commits, timely)
        made = {sha for sha in timely if sha in told or reach.made(commits[sha])}
        paths = self._changed_paths([*timely, *self._lost])
        for sha in (*made, *self._lost):
            reach.add_subject(commits[sha])
            dates.add(commits[sha].authored_at)
        found = set(made)
        asked: dict[str, dict[str, str]] = {}
        for sha in timely - made:
            commit = commits[sha]
            copied = commit.authored_at in dates
            if copied or reach.lists(commit) or reach.removed(commit, paths[sha]):
                found.add(sha)
            else:
                asked[sha] = paths[sha]
        return found | self._with_files(commits, made, asked)

    def _with_files(
        self, commits: dict[str, history.Commit], made: set[str], asked: Paths
    ) -> set[str]:
        """Of the asked commits, those with a file that a session wrote, or that a commit beside
        them changes which a session made; these files tell whether it is worth a closer look."""
        versions = MadeCommits([commits[sha] for sha in (made | self._lost)], self._paths)
        shared = dict(versions.shared_files(commits, asked))
        found: set[str] = set()
        for sha, paths in asked.items():
            beside = shared.get(sha, SharedFiles([], []))
            few = dict.fromkeys([*self._reach.written(commits[sha], paths), *beside.paths])
            if few:
                found.add(sha)
            if few and len(paths) >= _LARGE:
                self._telltale[sha] = SharedFiles(list(few), beside.sources)
        return found

    def _reach_of(self, commits: dict[str, history.Commit], shas: Iterable[str]) -> Reach:
        """What all sessions did that may be in one of these commits."""
        self._acts = self.sessions.since(_earliest(commits, shas) - REACH)
        self._reach = Reach.of_sessions(self._acts[0].values())
        return self._reach

    def _changed_paths(self, shas: Iterable[str]) -> dict[str, dict[str, str]]:
        missing = [sha for sha in shas if sha not in self._paths]
        if missing:
            self._paths |= history.changed_paths(self.repository.folder, missing)
        return self._paths

    def _tips(self) -> list[str]:
        listed = ask(self.repository.folder, "rev-parse", *ALL) or ""
        return sorted(set(listed.split()))

    def _unreachable(self, known: set[str], rows: list[CandidateSession]) -> list[history.Commit]:
        """Commits that sessions printed or hooks saw and no ref reaches any more, as far as git
        still has them."""
        printed: set[str] = set()
        for row in rows:
            for made in self.sessions.acts_of(row).made:
                printed.update(sha for sha, _ in made.printed if len(sha) >= 7)
        hooked = self.store.signals.unseen_in(self.repository.folders)
        begins = {sha[:7] for sha in known}
        named = (*printed, *hooked, *self._rewritten(known))
        missing = self._read_commits(sha for sha in named if sha[:7] not in begins)
        return [commit for sha, commit in missing.items() if sha not in known]

    def _rewritten(self, known: set[str]) -> set[str]:
        """All that these commits were before: what is known of the first of them goes for the
        last."""
        found: set[str] = set()
        for old, new in reversed(self._pairs):
            if new in known or new in found:
                found.add(old)
        return found - known

    def _todo(self, commits: dict[str, history.Commit]) -> set[str]:
        """What nobody looked at, and what a session did something for that nobody had read
        then."""
        todo = set(commits) - set(self.store.checkpoints.seen(commits))
        if self._lost:
            todo |= set(commits) - self._lost  # one of them may have taken their place
        since = self.sessions.news_since
        if since is not None:
            later = {s for s, commit in commits.items() if commit.committed_at >= since - _SLACK}
            todo |= self._touched_by_news(commits, later - todo)
        return todo

    def _touched_by_news(self, commits: dict[str, history.Commit], seen: set[str]) -> set[str]:
        """Of commits that were looked at, those that what was read since may belong to."""
        rows = [row for row in self.sessions.rows if row.linked < row.last_seq]
        said = self.store.checkpoints.overrides(seen)
        found = self.store.signals.made_in_session(seen) | said.keys()
        # what was too early for all sessions may not be for a new one
        reasons = self.store.checkpoints.seen(seen)
        found |= {sha for sha, (reason, _) in reasons.items() if reason == NOT_THEN}
        times = SessionTimes(rows)
        timely = {sha for sha in seen - found if times.fit(commits[sha])}
        if timely:
            news = Reach(self.sessions.news)
            paths = self._changed_paths(timely)
            for sha in timely:
                commit = commits[sha]
                if news.made(commit) or news.wrote(commit, paths[sha]) or news.lists(commit):
                    found.add(sha)
        return found

    def _judged_facts(
        self, commits: Iterable[history.Commit], progress: Callable[[int], None] | None
    ) -> dict[str, CommitFacts]:
        """The commits to judge, with all lines of the files that sessions wrote."""
        listed = {commit.sha: commit for commit in commits}
        sure = [commit for sha, commit in listed.items() if sha not in self._telltale]
        found = self._facts(sure, progress, counted=True)
        asked = [commit for sha, commit in listed.items() if sha in self._telltale]
        if asked:
            probe = self._probe(asked, found)
            found |= self._probed_facts(asked, probe)
            rest = [commit for commit in asked if commit.sha not in found]
            found |= self._facts(rest, counted=True, probe=probe)
            if progress:
                progress(len(asked))
        return {sha: found[sha] for sha in listed}

    def _probe(self, commits: Iterable[history.Commit], made: dict[str, CommitFacts]) -> LineProbe:
        """What is looked for in these commits: what sessions wrote, and what commits hold which
        they may be versions of."""
        assert self._acts is not None
        asked = [self._telltale[commit.sha] for commit in commits]
        probe = LineProbe(path for shared in asked for path in shared.paths)
        probe.add_sessions(*self._acts, Places(self.repository.tops))
        sources = {source for shared in asked for source in shared.sources}
        unread = self._facts(self._read_commits(sources - made.keys()).values())
        probe.add_made((made | unread)[sha] for sha in sources & (made | unread).keys())
        return probe

    def _probed_facts(
        self, commits: Iterable[history.Commit], probe: LineProbe
    ) -> dict[str, CommitFacts]:
        """Commits of which few files need to be read to see that they hold too little."""
        listed = {commit.sha: commit for commit in commits}
        wanted = {}
        for sha in listed:
            paths = self._telltale[sha].paths
            if len(paths) < len(self._paths[sha]) * _FEW:
                wanted[sha] = paths
        found: dict[str, CommitFacts] = {}
        for sha, changed in history.read_file_changes(self.repository.folder, wanted):
            if facts := self._seen_through(listed[sha], changed, probe):
                found[sha] = facts
        return found

    def _seen_through(
        self, commit: history.Commit, changed: Iterable[history.FileChange], probe: LineProbe
    ) -> CommitFacts | None:
        """The commit with what is of interest in it, if that is too little for a link; else None,
        for a closer look."""
        shared = self._telltale[commit.sha]
        paths = self._paths[commit.sha]
        if _may_rename(paths, shared.paths):
            return None
        telling = [change for change in changed if change.path in shared.paths]
        facts = CommitFacts.of_files(commit, telling, paths)
        return None if probe.finds(facts, shared.sources) else facts

    def _facts(
        self,
        commits: Iterable[history.Commit],
        progress: Callable[[int], None] | None = None,
        *,
        counted: bool = False,
        probe: LineProbe | None = None,
    ) -> dict[str, CommitFacts]:
        """Commits with their changes; if they are to be counted, with all lines of the files that
        sessions wrote; with a probe, what is of interest of those that hold too little."""
        listed = {commit.sha: commit for commit in commits}
        found = {sha: CommitFacts.of(c, []) for sha, c in listed.items() if c.is_merge}
        named = [sha for sha in listed if sha not in found]
        for sha, changed in history.read_changes(self.repository.folder, named):
            commit = listed[sha]
            facts = self._seen_through(commit, changed, probe) if probe else None
            if facts is None:
                written = self._written_in(commit, changed) if counted else ()
                facts = CommitFacts.of(commit, changed, written, places=counted)
            found[sha] = facts
            self._read += 1
            if progress:
                progress(1)
        return found

    def _written_in(
        self, commit: history.Commit, changed: Iterable[history.FileChange]
    ) -> set[str]:
        """Files of a commit that a session may have written."""
        found = set()
        for file in changed:
            paths = (file.path, file.old_path) if file.old_path else (file.path,)
            if self._reach.written(commit, paths):
                found.add(file.path)
        return found

    def _paused(
        self, commits: dict[str, history.Commit], todo: set[str], judged: set[str]
    ) -> dict[str, bool]:
        """Those first made while a person wanted nothing recorded here, and whether that is
        sure: git counts seconds.

        No session need be near: what it did in the pause is not kept. One that was only
        rewritten meanwhile keeps its story.
        """
        pauses = PauseSet(self.store.capture.pauses())
        if not pauses:
            return {}
        place = to_text(self.repository.folder)
        asked = judged | (todo & local_person(self.repository.folder).commits)
        # git's hook says nothing in a pause
        told = {signal.sha for signal in self.store.signals.of_commits(asked)}
        found: dict[str, bool] = {}
        for sha in asked - told:
            made = commits[sha].authored_at
            edges = [pauses.covers(made + ms, place, "git", "") for ms in (0, 999)]
            if any(edges):
                found[sha] = all(edges)
        return found

    # -- links -----------------------------------------------------------------------------------

    def _infer(
        self,
        commits: dict[str, history.Commit],
        todo: set[str],
        progress: Callable[[int], None] | None,
    ) -> tuple[dict[str, CommitFacts], list[Link], dict[str, str]]:
        if self._acts is None:
            self._reach_of(commits, todo)
        assert self._acts is not None
        sessions, foreign = self._acts
        listed = [commits[sha] for sha in todo]
        judged = self._judged_facts(listed, progress)
        seeds = self._seeds(todo, judged.values())
        since = min([_earliest(commits, todo) - REACH, *(seed.authored_at for seed in seeds)])
        reachable = {c.sha: c for c in history.commits(self.repository.folder, ALL, since=since)}
        people = self._people(reachable.values())
        linker = Linker(sessions, foreign=foreign, folders=self.repository.tops, people=people)
        priors = self._originals(since, todo, reachable)
        known = {**reachable, **self._read_commits(priors), **commits}
        gone = known.keys() - reachable.keys()
        others = self._others(known, judged, linker.spans(judged.values()), gone)
        links, superseded = linker.link(
            [*others, *judged.values()],
            todo=todo,
            hooks=self._hooks(todo, commits, sessions),
            pairs=[(old, new) for old, new in self._pairs if new in commits],
            seeds=[*seeds, *priors.values()],
            unreachable=gone | {seed.sha for seed in seeds if seed.sha not in reachable},
        )
        return judged, links, superseded

    def _others(
        self,
        known: dict[str, history.Commit],
        judged: dict[str, CommitFacts],
        spans: PathSpans,
        gone: Set[str],
    ) -> list[CommitFacts]:
        """Commits beside those to judge. The changes are read of those that may have used up a
        session's lines, or be another version of one of them; of the others the names will do."""
        newest = max(commit.committed_at for commit in known.values())
        for sha in gone & judged.keys():
            for file in judged[sha].files:  # a later commit may have taken its place
                spans.add(file.path, judged[sha].committed_at, newest)
        others = [commit for sha, commit in known.items() if sha not in judged]
        dates = {commit.authored_at for commit in judged.values()}
        rewritten = {sha for pair in self._pairs for sha in pair} | gone
        whole: dict[str, history.Commit] = {}
        for commit in others:
            same = commit.sha in rewritten or commit.authored_at in dates
            if same or self._reach.made(commit):
                whole[commit.sha] = commit
        facts = self._facts(whole.values())
        held = self._held(spans, [commit for commit in others if commit.sha not in whole])
        for sha, changed in history.read_file_changes(self.repository.folder, held):
            facts[sha] = CommitFacts.of_files(known[sha], changed, ())
        return [facts.get(commit.sha) or CommitFacts.of(commit, []) for commit in others]

    def _held(self, spans: PathSpans, commits: Iterable[history.Commit]) -> dict[str, list[str]]:
        """By commit, its files in which it may have used up what a session wrote."""
        timely = [commit for commit in commits if spans.cover(commit.committed_at)]
        paths = self._changed_paths(commit.sha for commit in timely)
        found = {}
        for commit in timely:
            if held := spans.held(commit.committed_at, paths.get(commit.sha, ())):
                found[commit.sha] = held
        return found

    def _originals(
        self, since: int, todo: set[str], reachable: dict[str, history.Commit]
    ) -> dict[str, PriorLink]:
        """Commits with a story that one of these replaced, or may be a squash of."""
        found: set[str] = set()
        for replaced in self.store.checkpoints.rewritten_from(self.repository.id, todo).values():
            found.update(replaced)
        kept = self.store.checkpoints.kept_since(self.repository.id, since, _BESIDE)
        known = [sha for sha in kept if sha in reachable and sha not in todo]
        if known:
            ancestry = Ancestry({sha: commit.parents for sha, commit in reachable.items()})
            for judged in todo & reachable.keys():
                # a squash does not come from what it holds
                found |= {sha for sha in known if not ancestry.descends(judged, sha)}
        stories = self.store.checkpoints.of_commits(found - todo)
        return {sha: self._prior(story) for sha, story in stories.items() if story.parts}

    def _read_commits(self, shas: Iterable[str]) -> dict[str, history.Commit]:
        """Those of the commits that git still has."""
        there = history.resolve_commits(self.repository.folder, shas).values()
        if not there:
            return {}
        found = history.commits(self.repository.folder, ["--no-walk=unsorted", *there])
        return {commit.sha: commit for commit in found}

    def _people(self, commits: Iterable[history.Commit]) -> People:
        """Under which names the sessions' persons commit."""
        homes = {row.id: home_of(row.cwd) for row in self.sessions.rows}
        people = People(homes, home_of(to_text(self.repository.folder)))
        for author in self.store.links.authors():
            people.add(home_of(author.cwd), {author.name.casefold(), author.email.casefold()})
        people.add_local(local_person(self.repository.folder), commits)
        return people

    def _hooks(
        self,
        todo: set[str],
        commits: dict[str, history.Commit],
        sessions: dict[int, SessionActivity],
    ) -> dict[str, list[tuple[int, int, bool]]]:
        """Commits that ran inside an agent's process: session, the event to cut at, whether it
        only rewrote."""
        found: dict[str, list[tuple[int, int, bool]]] = {}
        by_git = self.store.signals.of_commits(sorted(todo))
        # agents also see what others committed; where git told itself, that counts
        known = {signal.sha for signal in by_git}
        by_agent = [signal for signal in self._by_agent(todo, commits) if signal.sha not in known]
        for signal in (*by_git, *by_agent):
            sha, agent, session_id = signal.sha, signal.session_agent, signal.session_id
            if not agent or not session_id:
                continue
            row = self.sessions.find(agent, session_id)
            if row is None:
                # the whole id: the agent may still know the session
                self._unkept[sha] = (
                    f"made in {agent} session {session_id}, whose transcript is not kept"
                )
                continue
            acts = sessions.get(row.id) or self.sessions.acts_of(row)
            cut = _command_of(acts.made, commits[sha], signal.at)
            if cut is None:
                cut = self.sessions.outline(row.id).at(commits[sha].committed_at + 999)
            found.setdefault(sha, []).append((row.id, cut, bool(signal.data.get("rebasing"))))
        return found

    def _by_agent(
        self, todo: set[str], commits: dict[str, history.Commit]
    ) -> Iterator[CommitSignal]:
        """The same from the agents' hooks, which name a commit right after the command that made
        it."""
        begins = {sha[:7]: sha for sha in todo}
        first = min(commits[sha].committed_at for sha in todo)
        for signal in self.store.signals.agent_commits(first - _SLACK):
            sha = begins.get(signal.sha)
            if sha is None:
                continue
            made = commits[sha].committed_at
            if made - _SLACK <= signal.at <= made + DAY:
                yield msgspec.structs.replace(signal, sha=sha)

    @cached_property
    def _pairs(self) -> list[tuple[str, str]]:
        """What post-rewrite told: old and new."""
        return self.store.signals.rewrites()

    def _seeds(self, todo: set[str], judged: Iterable[CommitFacts]) -> list[PriorLink]:
        """Links of earlier runs: a commit that is gone may live on in a copy, of the same author
        date or change."""
        since = min(commit.authored_at for commit in judged) - _SLACK
        patches = [commit.patch_id for commit in judged if commit.patch_id]
        found = []
        alike = self.store.checkpoints.like(self.repository.id, since, patches)
        for sha, known in {**alike, **self.store.checkpoints.of_commits(self._lost)}.items():
            if sha not in todo and known.parts:
                found.append(self._prior(known))
        return found

    def _prior(self, known: Checkpoint) -> PriorLink:
        links = []
        for link in known_links(self.sessions, known):
            # how many lines of that commit is not what a copy of it is told by
            why = WROTE_LINES if _COUNTED.fullmatch(link.why) else link.why
            links.append(msgspec.structs.replace(link, why=why))
        return PriorLink(known.commit, known.subject, known.authored_at, known.patch_id, links)


def _may_rename(paths: Mapping[str, str], among: Iterable[str]) -> bool:
    """Whether one of the files may have become another in the commit: only all of the changes
    show it."""
    return "A" in paths.values() and any(paths[path] == "D" for path in among)


def _earliest(commits: dict[str, history.Commit], shas: Iterable[str]) -> int:
    return min(min(commits[sha].authored_at, commits[sha].committed_at) for sha in shas)


def _command_of(made: Iterable[CommitCommand], commit: history.Commit, heard: int) -> int | None:
    """The event of the command that a hook ran in; None if none ran then. The hook ran after the
    call began: of several within a second or two, the one that names the commit, else the last."""
    when = commit.committed_at
    spans = []
    for one in made:
        if one.called_at <= max(heard, when) and when <= one.done_at + 1000:
            spans.append(one)
    named = [one for one in spans if _names(one, commit)]
    return max((one.seq for one in named or spans), default=None)


def _names(made: CommitCommand, commit: history.Commit) -> bool:
    return commit.subject in made.command or any(
        commit.sha.startswith(sha) for sha, _ in made.printed
    )
