"""Everything the product asks of a database, as facets of one Store.

One side writes, under the ingest lock and in transactions; all others read. A method raises
StoreError if the database cannot be used, CorruptStore if it is damaged, Busy if another process
writes for too long. Sessions and projects are named by their numbers, which hold until the
database is made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from whyfor.model.checkpoints import (
    ChangeRecord,
    Checkpoint,
    CommitMark,
    LinkedCommit,
    Note,
    SeenCommit,
    StoryTitle,
)
from whyfor.model.events import (
    CallRef,
    EventHead,
    EventMoment,
    EventPlace,
    EventRef,
    SpokenWord,
    StoredEvent,
)
from whyfor.model.findings import Bucket
from whyfor.model.gaps import Gap
from whyfor.model.query import Filters, Match, Query, TurnMatch
from whyfor.model.sessions import (
    CandidateSession,
    NamedSession,
    Project,
    Session,
    SessionBrief,
    SessionCopy,
    SessionFile,
    SessionName,
    SessionPlace,
    Tokens,
)
from whyfor.model.signals import CommitSignal, Process, Signal
from whyfor.model.sources import HiddenState, Source, SourceHealth, StoredSegment, UnparsedRecord
from whyfor.model.stats import (
    ApprovalRecord,
    ApprovalWait,
    FailedStep,
    SessionCounts,
    StatsRow,
    StoreTotals,
)
from whyfor.store.journal import (
    AliasEntry,
    Entry,
    ForgottenEntry,
    Journal,
    JournalMark,
    NoteEntry,
    OverrideEntry,
    PauseEntry,
    SegmentEntry,
)
from whyfor.store.tombstones import Tombstones


class StoreWriter(Protocol):
    """Applies what readers found, inside the caller's transaction; the same thing twice is
    stored once."""

    def attempt(self) -> AbstractContextManager[None]:
        """Do something that may fail, inside the caller's transaction: what it wrote is taken
        back, the rest stays."""

    def sources(self) -> dict[tuple[str, str], Source]:
        """Every source by agent and path, without its state."""

    def source(self, agent: str, path: str) -> Source | None:
        """One of them, without its state."""

    def load_state(self, source: Source) -> None:
        """Fill in where a source's reader stood."""

    def save_source(self, source: Source) -> None:
        """Keep a source; one that is new gets its number."""

    def restart(self, source: Source, generation: int) -> None:
        """The source is read again from its first byte."""

    def add_segment(self, source: Source, entry: SegmentEntry) -> None:
        """Replaces a partial segment that began at the same byte."""

    def newest_segments(self, source: Source, limit: int) -> list[StoredSegment]:
        """Newest first, of any generation, unfinished lines aside."""

    def stored_segments(self, source: Source) -> list[StoredSegment]:
        """Of its current generation, in order, unfinished lines aside."""

    def unfinished_segment(self, source: Source) -> str | None:
        """The address of a last line that had no end yet."""

    def move_segment(self, source: Source, generation: int, start: int, address: str) -> None:
        """The same bytes, elsewhere."""

    def gaps(self, source: Source) -> list[Gap]:
        """What is not kept of a source's newest generation."""

    def hide(self, source: Source, hiding: Mapping[str, Any]) -> None:
        """Remember what else of a source must not be kept."""

    def hiding(self) -> list[HiddenState]:
        """What is remembered so of all sources."""

    def add_problems(
        self, source: Source, problems: list[UnparsedRecord], unknown: dict[str, int]
    ) -> None:
        """Keep what could not be parsed, and how many records were of unknown types."""

    def add_signals(self, signals: list[Signal]) -> None:
        """Keep what hooks announced."""

    def session_around(self, chain: list[Process], at: int) -> tuple[str, str] | None:
        """Agent and id of the session that the nearest of these processes was in at that time."""

    def place(self, cwd: str) -> int | None:
        """The project a folder is known to belong to."""

    def project(self, number: int) -> Project | None:
        """A project by its number."""

    def former(self, project: Project) -> list[tuple[str, str | None]]:
        """Projects met at the same path that may be this one before it had a commit or a remote:
        identity, root."""

    def adopt(self, path: str, project: Project) -> int:
        """Everything recorded at or below a path belongs to this project."""

    def adopted(self, cwd: str) -> Project | None:
        """The project a person gave a path to."""

    def learn_place(self, cwd: str, project: Project, former: list[str], observed_at: int) -> int:
        """This folder belongs to this project, as of now; what was known under former identities
        joins it. Returns the project\'s number."""

    def homeless(self, agent: str, bucket: Bucket) -> bool:
        """A session belongs to the folder it began in; only until that is known does a folder
        matter."""

    def whereabouts(self, agent: str, session_id: str) -> str | None:
        """The folder a session is known to have begun in."""

    def has_event(self, agent: str, session_id: str, key: int) -> bool:
        """Whether a session has an event of this key."""

    def apply(self, agent: str, bucket: Bucket, observed_at: int, *, mutable: bool) -> int:
        """Store what a run of records says about a session; returns the number of new events."""

    def settle(self, agent: str, session_id: str) -> None:
        """The source is read: stop remembering its keys."""

    def recount(self, keys: list[int], sessions: list[int]) -> None:
        """Others that held these responses are gone: one of these sessions counts each of them
        now."""

    def finish(self) -> None:
        """Bring what is derived from whole sessions up to date, before the transaction ends."""


class CaptureStore(Protocol):
    """What was read of which file, and what could not be understood; of this machine."""

    def writer(self) -> StoreWriter:
        """A writer that knows nothing of what others before it did not commit."""

    def segments(self, session: Session) -> list[tuple[str, StoredSegment]]:
        """Of the newest generation of a session's main transcripts, in order; each with its
        path."""

    def sources_of(self, session: Session) -> list[Source]:
        """What a session is made of: its transcripts, its subagents', what lies beside them;
        without their states."""

    def pieces(self, source: Source) -> list[StoredSegment]:
        """The segments of a source's newest generation, in order."""

    def has_segments(self) -> bool:
        """Whether anything was ever stored."""

    def digests(self) -> Iterator[tuple[str, str]]:
        """The address of every segment, each with the path of its source."""

    def health(self, agent: str) -> list[SourceHealth]:
        """Every source of an agent."""

    def unparsed(self, agent: str) -> list[tuple[str, str, int]]:
        """Records that could not be parsed, most first: path, reason, how many."""

    def unknown_types(self, agent: str) -> dict[str, int]:
        """Record types that no reader knows, most first, and how many records have them."""

    def pauses(self) -> list[PauseEntry]:
        """When and where a person wanted nothing recorded."""

    def save_pause(self, pause: PauseEntry) -> None:
        """Keep a pause, in the caller's transaction; one of the same id is replaced."""

    def segment_entries(self) -> list[SegmentEntry]:
        """Every segment of every source as the journal tells of it, in the order they were
        seen."""

    def all_entries(self) -> list[Entry]:
        """Everything the journal could tell; what a damaged database cannot tell any more is
        left out."""


class SessionStore(Protocol):
    """Sessions: found by name, filter or place."""

    def matching(self, filters: Filters, *, limit: int | None, subagents: bool) -> list[Session]:
        """Newest first."""

    def children(self, session_ids: list[str]) -> list[Session]:
        """Subagents of these sessions, oldest first."""

    def find(self, reference: str, agent: str | None = None) -> Session:
        """By id, or by any beginning of it that fits one session; a whole id wins, then main
        sessions."""

    def by_number(self, ids: list[int]) -> dict[int, Session]:
        """Sessions by their numbers; unknown numbers are left out."""

    def page(
        self, filters: Filters, before: tuple[int, int] | None, limit: int, *, subagents: bool
    ) -> list[tuple[tuple[int, int], Session]]:
        """Newest first, after the place of the last one seen; each with its own place."""

    def copies(self) -> list[SessionCopy]:
        """Every main session that begins with the records of another that is stored, oldest
        first."""

    def begun_in(self, cwd: str) -> list[SessionFile]:
        """Main sessions that began in a folder: agent, id, title, last event, transcript and its
        size when read."""

    def last_ended(self, agent: str) -> int | None:
        """When the last event of any session of an agent was; None if there is none."""

    def last_started(self, agent: str) -> int | None:
        """When the newest session of an agent began, subagents aside."""

    def last_seqs(self, sessions: list[int]) -> dict[int, int]:
        """The last seq of each of these sessions."""

    def names(self, sessions: list[int]) -> dict[int, NamedSession]:
        """Agent, id, parent, project of sessions by their numbers."""

    def numbers(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Of sessions by agent and whole id."""

    def others_active(self, sessions: list[int], since: int, until: int) -> bool:
        """Whether another session of the same project was active at some time."""

    def recent(self, project: int, since: int, limit: int) -> list[tuple[int, int]]:
        """Main sessions in which something was said since: their number, and the last event a
        commit has of it."""

    def count_since(self, project: int, since: int) -> int:
        """Main sessions in which something was said since; 0 is all."""

    def first_started(self, project: int) -> int | None:
        """When the first session of a project began."""

    def files_after(self, session: int, after: int) -> set[str]:
        """Files a session wrote after an event."""

    def agent_version(self, session: int) -> str | None:
        """Of the agent's program."""

    def places(self) -> list[SessionPlace]:
        """Main sessions in the order they were first read."""

    def written_paths(self, sessions: list[int]) -> set[str]:
        """Files that any of these sessions wrote."""

    def writing_below(self, folders: Iterable[str]) -> set[int]:
        """Sessions that wrote below one of these folders."""

    def files_since(self, session: Session, seq: int, since: int) -> set[str]:
        """Files a session wrote after an event, and its subagents that ended after a moment."""

    def active_since(self, since: int) -> list[tuple[str, str]]:
        """Main sessions that wrote something or whose hooks did since a moment: agent and id."""

    def briefs(self, sessions: Iterable[int]) -> list[SessionBrief]:
        """These sessions at a glance."""

    def family(self, agent: str, session_id: str, since: int) -> list[SessionBrief]:
        """A session, and those of its subagents that wrote something since a moment."""


class ConversationStore(Protocol):
    """The events of one session: whole, in pieces, or counted."""

    def events(self, session: int, first: int = 0, last: int = ...) -> Iterator[StoredEvent]:
        """Events first to last, both included, in order; whole."""

    def events_at(self, session: int, seqs: Iterable[int], text_max: int) -> list[StoredEvent]:
        """These, in order; of a text that is longer only its beginning."""

    def stretch(self, session: int, after: int, limit: int) -> list[StoredEvent]:
        """At most `limit` events after a seq, in order."""

    def tail(self, session: int, limit: int, cut: int) -> list[StoredEvent]:
        """The last events in order: words and calls, no longer than that; data four times as
        long is left out."""

    def long_calls(self, session: int, among: int, size: int) -> list[StoredEvent]:
        """Of a session's last events the calls and requests with more bytes than that, newest
        first."""

    def heads(self, session: int) -> list[EventHead]:
        """All events of a session, in order, without their words."""

    def call_refs(self, session: int, first: int, last: int) -> list[CallRef]:
        """Calls, results, requests, questions and subagents in a range, by the call's id."""

    def result_refs(self, session: int, after: int, idents: Iterable[str]) -> list[CallRef]:
        """Results of calls, however long after them."""

    def tree(
        self, session: int, seqs: Iterable[int] | None = None
    ) -> list[tuple[int, str | None, str | None]]:
        """Where events (or all) stand in a conversation that is a tree: seq, own id, id of what
        they follow."""

    def ids(self, session: int, kind: str) -> dict[int, str | None]:
        """The agent's own names of events of a kind."""

    def line_counts(self, session: int, seqs: Iterable[int]) -> dict[int, int]:
        """How many lines the texts of events have."""

    def openings(self, session: int, seqs: Iterable[int], length: int) -> dict[int, str]:
        """How the texts of events begin."""

    def tokens_by_turn(self, session: int) -> dict[int, Tokens]:
        """Tokens by turn, subagents aside."""

    def tasks(self, sessions: Iterable[int], length: int) -> dict[int, tuple[str, int | None]]:
        """How subagents' tasks begin, and when each was given."""

    def first_of_kinds(self, session: int, kinds: tuple[str, ...], limit: int) -> list[int]:
        """Where the first events of some kinds are."""

    def last_of_kind(self, session: int, kind: str) -> int | None:
        """The seq of a session's last event of a kind; None if it has none."""

    def last_seq(self, session: int) -> int:
        """The seq of a session's last event; 0 if it has none."""

    def observed(self, session: int, seq: int) -> tuple[int, int]:
        """When the event at a seq, or the one before it if that is gone, was observed; and its
        seq. Zeros: none."""

    def key_of(self, session: int, seq: int) -> int | None:
        """By which an event is known again when its records are read once more."""

    def keys(self, session: int, last: int = ...) -> dict[int, int]:
        """The events of a session up to one of them: key → seq."""

    def prompt_before(self, session: int, seq: int) -> int:
        """Where a person last asked for something before an event; 0 if nowhere."""

    def words(self, session: int, first: int, last: int) -> list[SpokenWord]:
        """What was said in a stretch, in order; of what the agent said, the last words of each
        turn."""

    def work_counts(self, session: int, first: int, last: int) -> tuple[int, int]:
        """How many tools were called and questions asked in a stretch."""

    def last_request(self, session: int, first: int, last: int) -> SpokenWord | None:
        """The last thing a person asked for in a stretch, in as many words as fit a line."""

    def first_request(self, session: int, first: int, last: int) -> int | None:
        """Where a person first asks for something in a stretch."""

    def turns(self, session: int, first: int, last: int) -> tuple[int, int]:
        """The turns a stretch begins and ends in."""

    def turn_end(self, session: int, seq: int) -> int:
        """The last event before a person asks for something else."""

    def time_from(self, session: int, seq: int) -> int | None:
        """The time of the first event from a place on that says when it was."""

    def commands(
        self, session: int, first: int, last: int | None, names: Iterable[str]
    ) -> list[str]:
        """What was run through tools of these names."""

    def active_times(self, session: int, until: int) -> list[tuple[int, int]]:
        """When something was said and done in a session, piece by piece, from when to when."""

    def moments(self, session: int) -> Iterator[EventMoment]:
        """All events of a session, in order, without their words."""

    def copied_marks(self, session: int) -> dict[tuple[int, str, str], int]:
        """By what an event is known again in a copy of its session (time, kind, text): its seq."""

    def prompts_since(self, session: int, seq: int) -> int:
        """How often a person asked for something after an event."""

    def time_of(self, event: EventRef) -> int | None:
        """When an event was; None if it is not there or does not say."""


class SearchStore(Protocol):
    """Turns and commits by their words."""

    def match(
        self,
        query: Query,
        filters: Filters,
        limit: int,
        *,
        any_clause: bool = False,
        newest: bool = False,
    ) -> list[Match]:
        """Pieces of turns that match, best first (or newest first)."""

    def coverage(
        self, query: Query, fields: tuple[str, ...], matches: list[Match]
    ) -> dict[tuple[int, int], float]:
        """Which share of a query's words each match holds, rare words counting for more."""

    def places(self, query: Query, filters: Filters, limit: int) -> list[TurnMatch]:
        """As the index has them, unranked: cheap however many there are."""

    def commits(self, words: list[str], filters: Filters, limit: int) -> list[LinkedCommit]:
        """Newest first; of the words (ASCII, lower case) each stands somewhere in what is known
        of the commit."""

    def agents_of(self, shas: list[str]) -> dict[str, list[str]]:
        """Which agents took part in commits."""

    def words_like(self, beginning: str, limit: int) -> list[str]:
        """Words of the index that begin so, the common ones first."""


class CheckpointStore(Protocol):
    """Commits with a story, and what people said of them. Writes in the caller's transaction."""

    def of_commits(self, shas: Iterable[str]) -> dict[str, Checkpoint]:
        """Checkpoints by commit, oldest first; commits without one are left out."""

    def like(self, project: int, since: int, patches: list[str]) -> dict[str, Checkpoint]:
        """Those that may be the originals of commits: authored since, or with the same change."""

    def live(self, project: int) -> list[str]:
        """Commits that have a story and were not replaced."""

    def of_sessions(self, sessions: Iterable[int]) -> dict[str, Checkpoint]:
        """Checkpoints that any of these sessions has a part in."""

    def all(self) -> dict[str, Checkpoint]:
        """Every checkpoint by commit, oldest first."""

    def of_group(self, root: str) -> dict[str, Checkpoint]:
        """Checkpoints of a group, by the id of its first."""

    def beginning(self, column: str, text: str) -> list[str]:
        """Commits whose sha (or checkpoint id) begins so."""

    def seen(self, shas: Iterable[str]) -> dict[str, tuple[str | None, list[dict[str, Any]]]]:
        """Commits that were looked at: why there is no story, and hints."""

    def notes(self, shas: Iterable[str]) -> dict[str, tuple[str, Note]]:
        """Who wrote what about a commit; of several notes each says more, the last word counts."""

    def overrides(self, shas: Iterable[str]) -> dict[str, list[tuple[str, str, str]]]:
        """By commit: agent, session id, link or unlink."""

    def said(self, shas: Iterable[str]) -> list[OverrideEntry | NoteEntry]:
        """All that was ever said of these commits."""

    def all_said(self) -> list[OverrideEntry | NoteEntry]:
        """All that was ever said of any commit."""

    def spent(self, spans: Iterable[tuple[int, int, int]]) -> Tokens:
        """Tokens of ranges of sessions (id, first, last), subagents included; ranges that adjoin
        share nothing.

        Agents write down what a response cost with it or right after it: up to the next event it
        belongs to the range.
        """

    def known(self, shas: Iterable[str]) -> dict[str, CommitMark]:
        """Of commits that have a story."""

    def kept_since(self, project: int, since: int, limit: int) -> list[str]:
        """Commits with a story that were not replaced, newest first."""

    def rewritten_from(self, project: int, shas: Iterable[str]) -> dict[str, list[str]]:
        """What commits were before they were rewritten."""

    def group_sizes(self, roots: Iterable[str]) -> dict[str, int]:
        """How many commits each group has, replaced ones aside."""

    def project_of(self, sha: str) -> int | None:
        """The project a commit was seen in."""

    def committed(self, sessions: list[int]) -> dict[int, int]:
        """How many commits hold work of a session, rewritten ones once."""

    def cuts(self, session: int) -> set[int]:
        """Events of a session that links of commits rest on."""

    def last_linked(self, session: int) -> int:
        """The last event of a session that a commit holds; 0 if none does."""

    def titles(self) -> list[StoryTitle]:
        """Every commit with a story in one line."""

    def save(self, project: int, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint in the place of any earlier one of the same commit."""

    def remove(self, commit: str) -> None:
        """Drop a commit's checkpoint, if it has one."""

    def saw(self, project: int, rows: Iterable[SeenCommit]) -> None:
        """Commits that were looked at."""

    def override(self, entry: OverrideEntry) -> None:
        """Keep that a person linked or unlinked a session and a commit."""

    def note(self, entry: NoteEntry) -> None:
        """Keep what somebody wrote about a commit."""


class LinkStore(Protocol):
    """What linking asks and keeps. Writes in the caller's transaction."""

    def grown(self) -> list[tuple[int, int]]:
        """Sessions that have events which no run has looked at: number and project."""

    def hooked_projects(self, after: int) -> set[int]:
        """Projects that git's hooks told of in signals after this number."""

    def lengths(self, project: int) -> list[tuple[int, int]]:
        """Every session of a project: number and last seq."""

    def candidates(self, project: int, sessions: Iterable[int]) -> list[CandidateSession]:
        """Sessions of a project, these sessions, and the parents of these."""

    def candidate(self, agent: str, session_id: str) -> CandidateSession | None:
        """A session by name, of whatever project."""

    def activity(self, session: int, most: int | None = None) -> tuple[int, bytes] | None:
        """What linking kept of what a session did, and up to which event; None if nothing, or if
        it is more bytes than `most`."""

    def origins(self, session: int) -> list[int]:
        """Sessions that a session may be a fork of. Not every fork says that it is one, but what
        was paid for is not paid for again."""

    def tips(self, project: int) -> list[str] | None:
        """Where a repository's refs were when it was last looked at; None if it never was."""

    def save_tips(self, project: int, shas: list[str]) -> None:
        """Remember where a repository's refs are."""

    def save_activity(self, rows: Iterable[tuple[int, int, bytes]]) -> None:
        """Keep what sessions did: number, last event, activity."""

    def save_looked(self, project: int, rows: Iterable[tuple[int, int]]) -> None:
        """Remember how much of each session was looked at: number, last event."""


class SignalStore(Protocol):
    """What hooks announced."""

    def of_session(self, agent: str, session_id: str) -> list[Signal]:
        """What the hooks of a session announced, in order."""

    def hooked(self, sha: str) -> list[tuple[str, str]]:
        """Sessions in whose process a hook saw the commit made."""

    def last_heard(self, agent: str) -> int | None:
        """When a hook of an agent was last heard, doctor's own probes aside."""

    def newest(self) -> int:
        """The number of the newest signal; 0 if there is none."""

    def after(self, number: int) -> list[Signal]:
        """Signals with a higher number, in order."""

    def last_of(self, agent: str, session_id: str, limit: int) -> list[Signal]:
        """The last signals of a session, newest first."""

    def ended_at(self, agent: str, session_id: str) -> int | None:
        """When a session's hook last said that it ended."""

    def made_in_session(self, shas: Iterable[str]) -> set[str]:
        """Those of these commits that a hook saw inside a session."""

    def unseen_in(self, folders: Iterable[str]) -> set[str]:
        """Commits that git's hook told of in these folders and nobody has looked at."""

    def of_commits(self, shas: Iterable[str]) -> list[CommitSignal]:
        """What git's own hook told of commits, oldest first."""

    def agent_commits(self, since: int) -> list[CommitSignal]:
        """What agents' hooks told of commits since a moment, oldest first: one for each
        abbreviated name of a commit that a command printed."""

    def rewrites(self) -> list[tuple[str, str]]:
        """Commits that git rewrote, in that order: old and new."""


class ProjectStore(Protocol):
    """Projects, their places and aliases."""

    def known(self) -> list[tuple[int, Project]]:
        """Every project with its number."""

    def places(self) -> dict[str, int]:
        """Folders that sessions ran in, each with its project's number."""

    def active(self) -> dict[int, tuple[int, int | None]]:
        """By project: how many main sessions, and when something was last said."""

    def find(self, identity: str) -> tuple[int, Project] | None:
        """A project and its number by identity; None if it is not known."""

    def save_alias(self, entry: AliasEntry) -> None:
        """Keep that a path belongs to a project, in the caller's transaction."""

    def former(self, project: Project) -> list[tuple[str, str | None]]:
        """Projects met at the same path that may be this one before it had a commit or a remote:
        identity, root."""

    def session_counts(self) -> dict[int, int]:
        """By project: how many main sessions."""

    def story_counts(self) -> dict[int, int]:
        """By project: how many commits with a story."""

    def aliases(self) -> dict[str, list[str]]:
        """By identity: the paths that a person said are that project's."""


class FeedStore(Protocol):
    """What is new or otherwise since a moment, for those who have read the rest."""

    def lengths(self) -> dict[int, int]:
        """Every session's last seq."""

    def ends(self) -> tuple[int, int]:
        """What comes after the first number is all known; the second is the last there is."""

    def after(self, number: int, limit: int) -> list[ChangeRecord]:
        """At most `limit` changes after a number, in order."""

    def of_sessions(self) -> dict[int, int]:
        """By session, the last change of one of its events."""

    def begin_anew(self, last: int = 0) -> None:
        """Whoever has read anything, up to that number too, must read it again; in the caller's
        transaction."""

    def prune(self) -> None:
        """Drop the oldest changes if there are too many, in the caller's transaction."""


class StatsStore(Protocol):
    """Figures about all sessions at once."""

    def totals(self) -> StoreTotals:
        """How much is kept."""

    def grouped(self, by: str, filters: Filters) -> list[StatsRow]:
        """Sessions, turns and tokens by agent, project, day or model."""

    def counted(self, filters: Filters, recent: int = 0) -> list[SessionCounts]:
        """Sessions, turns and tokens by agent, project and turns per session."""

    def by_model(self, filters: Filters) -> list[tuple[str, int, Tokens]]:
        """Main sessions and tokens; first by session, as the table lies, which is far cheaper."""

    def turns_by_time(self, filters: Filters, since: int, until: int) -> list[tuple[int, int]]:
        """By quarter of an hour since 1970, in order: how many turns of main sessions began."""

    def first_at(self, filters: Filters) -> int | None:
        """When the oldest thing that is kept happened, whatever the period."""

    def wrong(self, filters: Filters) -> list[FailedStep]:
        """What went wrong in main sessions."""

    def commits(self, filters: Filters, beyond: str) -> tuple[int, int]:
        """Commits with a story, and all that could have one: no merges, none without it for the
        reason `beyond`."""

    def told_approvals(self, filters: Filters) -> list[ApprovalRecord]:
        """As transcripts tell of them, by session, oldest first."""

    def announced_approvals(
        self, filters: Filters, questions: frozenset[str]
    ) -> list[ApprovalWait]:
        """As hooks announce them; they end with the next result in that session, if no prompt
        comes first."""


class ForgetStore(Protocol):
    """What forget asks of the database and removes from it, in the caller's transaction."""

    def tombstones(self, home: Path) -> Tombstones:
        """Return all that was ever forgotten, with the salt that is kept in `home`."""

    def save_tombstones(self, entry: ForgottenEntry) -> None:
        """Remember what was forgotten."""

    def reasons(self) -> dict[str, str]:
        """Return the commits that have no story because of a forget, and why."""

    def descendants(self, names: Iterable[SessionName]) -> set[SessionName]:
        """Return these sessions and the subagents that worked for them."""

    def children_begun(self, name: SessionName, first: int, last: int) -> set[SessionName]:
        """Return the subagents of a session that began between two times."""

    def has_transcript(self, name: SessionName) -> bool:
        """Whether a session has a file of its own, or only another session tells what it did."""

    def sessions_before(self, when: int) -> set[SessionName]:
        """Return the main sessions that ended before a time."""

    def subagents_before(self, when: int) -> set[SessionName]:
        """Return the subagents with a transcript of their own that ended before a time."""

    def has_signal_before(self, when: int) -> bool:
        """Whether a hook announced anything before this time."""

    def rewrites(self, sha: str) -> set[str]:
        """Return a commit with all that it was before it was rewritten, or is now."""

    def record_count(self, name: SessionName) -> int:
        """How many records were read of a session's own files."""

    def forks(self, session_id: str) -> set[SessionName]:
        """Return the sessions that say they come from this one."""

    def shared_usage(self, sessions: Iterable[int]) -> tuple[list[int], list[int]]:
        """Return the keys of usage that others share with these sessions (forks, resumed
        sessions), and the ids of those others."""

    def event_places(self, session: int) -> dict[int, EventPlace]:
        """Return the events of a session by key."""

    def sessions_with(self, keys: Iterable[int]) -> set[SessionName]:
        """Return the sessions that have one of these events."""

    def folders(self, names: Iterable[SessionName]) -> dict[SessionName, str]:
        """Return the folder each of these sessions ran in, where it is known."""

    def line_digests(self, name: SessionName) -> list[str]:
        """Return the addresses of the segments of a session that are made of lines."""

    def source_positions(self, agent: str) -> dict[str, int]:
        """Return how far each source of an agent was read, by path."""

    def titles(self) -> dict[int, str]:
        """Return the legacy titles by the key of the message they name."""

    def signal_ids(self, signals: Iterable[Signal]) -> list[int]:
        """Return the rows of these signals: of several that are alike, as many as are given."""

    def delete_session(self, session: int) -> None:
        """Delete a session and all that hangs on it."""

    def empty_session(self, session: int) -> None:
        """Delete all that was read of a session; the session, its folder and its links stay."""

    def clear_folder(self, session: int) -> None:
        """Forget the folder a session ran in."""

    def reset_sources(self, names: Iterable[SessionName]) -> None:
        """Set the sources of these sessions and their subagents back, as if nothing of them had
        been read; what their files look like stays, so that they are not opened again."""

    def delete_signals(self, ids: Iterable[int]) -> None:
        """Delete signals; those that come get the freed ids, so none of these counts as linked."""

    def delete_titles(self, keys: Iterable[int]) -> None:
        """Delete titles by the keys of the messages they name."""

    def put_titles(self, titles: dict[int, str]) -> None:
        """Keep titles by the keys of the messages they name."""

    def drop_hints(self, names: set[SessionName]) -> None:
        """Drop the hints of commits that name these sessions."""

    def keep_notes(self, kept: Iterable[tuple[str, int]]) -> None:
        """Delete all notes but these: commit and time."""

    def keep_overrides(self, kept: Iterable[tuple[str, str, str]]) -> None:
        """Delete all overrides but these: commit, agent and session id."""

    def linked_whole(self, sessions: Iterable[int]) -> list[tuple[int, int]]:
        """Return which of these sessions linking has looked at to their end: project, session."""

    def renumber_linked(self, sessions: Iterable[int], whole: list[tuple[int, int]]) -> None:
        """After sessions were read again: linking has looked at all of those in `whole`, and
        looks at the others from their beginning."""

    def move_segments(self, segments: Mapping[tuple[str, str, int, int], SegmentEntry]) -> None:
        """Name segments by the addresses they have now; given by agent, path, generation and
        first byte."""

    def trial(self) -> AbstractContextManager[None]:
        """Run a transaction that is always rolled back."""

    def overwrite_deleted(self) -> None:
        """Have what is deleted from now on overwritten in the database's file."""

    def scrub(self, copy: Path) -> bool:
        """Leave nothing deleted in the database's files; False if a reader that is still open
        keeps the log in use.

        Full text search keeps deleted words until its parts are merged, SQLite deleted pages
        until the file is rewritten, and the log of writes what both were before. It is rewritten
        by way of a copy of our own: a plain VACUUM would put everything into the system's folder
        for temporary files.
        """


class Store(Protocol):
    """A database that is open, by what can be asked of it."""

    @property
    def capture(self) -> CaptureStore: ...

    @property
    def sessions(self) -> SessionStore: ...

    @property
    def conversation(self) -> ConversationStore: ...

    @property
    def search(self) -> SearchStore: ...

    @property
    def checkpoints(self) -> CheckpointStore: ...

    @property
    def links(self) -> LinkStore: ...

    @property
    def signals(self) -> SignalStore: ...

    @property
    def projects(self) -> ProjectStore: ...

    @property
    def feed(self) -> FeedStore: ...

    @property
    def stats(self) -> StatsStore: ...

    @property
    def forget(self) -> ForgetStore: ...

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    def begin(self) -> None:
        """Open a transaction that may write, unless one is open."""

    def commit(self, journal: Journal | None = None) -> None:
        """Commit the open transaction; with a journal, append its pending entries first.

        Raises Disagreement, with nothing written, if the journal is not as this database left it.
        """

    def rollback(self) -> None:
        """Take back the open transaction, if there is one."""

    def transaction(self, journal: Journal | None = None) -> AbstractContextManager[None]:
        """All or nothing of what is written inside; with a journal, its pending entries too."""

    def total_changes(self) -> int:
        """How many rows this connection has changed."""

    def version(self) -> int:
        """Another number whenever another connection has changed the database."""

    def in_place(self) -> bool:
        """Whether this is still the database that one would open now."""

    def is_whole(self) -> bool:
        """Return whether it can be read and has every table of its version."""

    def check(self) -> list[str]:
        """What the database finds wrong with itself, indexes included; empty is fine."""

    def close(self) -> None:
        """Let go of it; closing twice is fine."""

    def mark(self, name: str) -> int:
        """A number that was kept under a name; 0 if none was."""

    def set_mark(self, name: str, number: int) -> None:
        """Keep a number under a name, in the caller's transaction."""

    def journal_end(self) -> JournalMark | None:
        """How the journal ended when this database was last written; None if nobody said so."""

    def save_journal_end(self, mark: JournalMark) -> None:
        """Remember, in the caller's transaction, that the database has everything up to this end
        of the journal."""
