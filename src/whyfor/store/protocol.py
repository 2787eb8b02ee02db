"""Everything the product asks of a database, as facets of one Store.

`SharedStore` has the facets that a team server has too: records, sessions, listing, conversation,
search, checkpoints, projects, memory, vectors, tasks, removal, feed and stats. `Store` adds those
of one machine: capture, links, signals and forget, and the journal.

Only the holder of the ingest lock writes, in transactions; everybody else reads. A method raises
StoreError if the database cannot be used, CorruptStore if it is damaged, Busy if another process
writes for too long. Sessions and projects are identified by numbers, which are valid until the
database is rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from whyfor.model.approvals import (
    ApprovalDecision,
    ApprovalQuery,
    ChangedSession,
    ListedApproval,
)
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
    LongText,
    Response,
    SpokenWord,
    StoredEvent,
)
from whyfor.model.findings import Bucket
from whyfor.model.gaps import Gap
from whyfor.model.lines import CommitLines
from whyfor.model.listing import (
    FolderCount,
    ListedSession,
    ListFilter,
    ListTotals,
    PeriodCount,
    RowKey,
)
from whyfor.model.memory import (
    CommandCount,
    Injection,
    MemoryFilter,
    ModelCall,
    NoteCounts,
    NotePlace,
    NoteStatement,
    Observation,
    ProjectCommand,
    ProjectNotes,
    SessionMemory,
    SessionSummary,
    StoredObservation,
    TouchedFile,
    WaitingSession,
)
from whyfor.model.query import (
    CardMatch,
    Filters,
    Match,
    PassageQuery,
    Query,
    SessionOwner,
    TurnMatch,
)
from whyfor.model.sessions import (
    CandidateSession,
    CommitAuthor,
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
from whyfor.model.shell_edits import ShellEdits
from whyfor.model.signals import CommitSignal, Process, Signal
from whyfor.model.sources import HiddenState, Source, SourceHealth, StoredSegment, UnparsedRecord
from whyfor.model.stats import (
    ApprovalRecord,
    ApprovalWait,
    CostRow,
    FailedCommand,
    FailedStep,
    SessionCounts,
    StatsRow,
    StoreTotals,
    TurnTime,
)
from whyfor.model.sync import (
    OutboxItem,
    SentSource,
    SessionUpload,
    SharedChange,
    SharedStory,
    SyncTry,
)
from whyfor.model.tasks import StoredRun, TaskIssue, TaskRun, TaskStatement
from whyfor.model.telemetry import (
    PricedResponse,
    SideRequest,
    StoredResponse,
    ToldRequest,
)
from whyfor.model.titles import ProposedTitle
from whyfor.model.vectors import SessionVectors, VectorBits, VectorCounts
from whyfor.model.work_feed import FailedEvent
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

RENEW = "renew"  # a mark: the next ingest makes the database again, in less space


class StoreWriter(Protocol):
    """Stores what readers found, inside the caller's transaction. Storing the same thing twice
    changes nothing."""

    def attempt(self) -> AbstractContextManager[None]:
        """Run something that may fail: if it raises, what it wrote is rolled back, and the caller's
        transaction continues."""

    def sources(self) -> dict[tuple[str, str], Source]:
        """Return every source by agent and path, without its reader's state."""

    def source(self, agent: str, path: str) -> Source | None:
        """Return one source, without its reader's state; None if it is unknown."""

    def load_state(self, source: Source) -> None:
        """Load the state of a source's reader into the source."""

    def save_source(self, source: Source) -> None:
        """Save a source; a new one gets its number."""

    def restart(self, source: Source, generation: int) -> None:
        """Set a source back to its first byte, because its file was replaced."""

    def add_segment(self, source: Source, entry: SegmentEntry) -> None:
        """Add a segment; it replaces a partial one that began at the same byte."""

    def newest_segments(self, source: Source, limit: int) -> list[StoredSegment]:
        """Return the newest segments, newest first, of any generation, without unfinished lines."""

    def stored_segments(self, source: Source) -> list[StoredSegment]:
        """Return the segments of the current generation in order, without unfinished lines."""

    def unfinished_segment(self, source: Source) -> str | None:
        """Return the address of an unfinished last line; None if there is none."""

    def move_segment(self, source: Source, generation: int, start: int, address: str) -> None:
        """Change the address of a segment; its bytes stay the same."""

    def gaps(self, source: Source) -> list[Gap]:
        """Return the gaps of a source's newest generation: bytes that are not stored."""

    def hide(self, source: Source, hiding: Mapping[str, Any]) -> None:
        """Save what the private filter must remember of a source."""

    def hiding(self) -> list[HiddenState]:
        """Return what the private filter remembers of all sources."""

    def add_problems(
        self, source: Source, problems: list[UnparsedRecord], unknown: dict[str, int]
    ) -> None:
        """Save records that could not be parsed, and how many records of each unknown type there
        were."""

    def add_signals(self, signals: list[Signal]) -> None:
        """Save signals: what hooks reported."""

    def session_around(self, chain: list[Process], at: int) -> tuple[str, str] | None:
        """Return agent and id of the session that the nearest of these processes belonged to at a
        time."""

    def place(self, cwd: str) -> int | None:
        """Return the number of the project a folder belongs to; None if it is unknown."""

    def project(self, number: int) -> Project | None:
        """Return a project by its number."""

    def former(self, project: Project) -> list[tuple[str, str | None]]:
        """Return the projects seen at the same path that may be this one before it had a commit or
        a remote: identity and root."""

    def adopt(self, path: str, project: Project) -> int:
        """Assign everything recorded at or below a path to a project; return the project's
        number."""

    def place_session(self, agent: str, session_id: str, project: Project) -> None:
        """Assign a session that was just read to a project, if nothing says where it ran."""

    def adopted(self, cwd: str) -> Project | None:
        """Return the project a person assigned a folder to; None if nobody did."""

    def learn_place(self, cwd: str, project: Project, former: list[str], observed_at: int) -> int:
        """Record that a folder belongs to a project as of now, and merge what is stored under its
        former identities. Return the project's number."""

    def homeless(self, agent: str, bucket: Bucket) -> bool:
        """Return whether the folder of a session is still unknown; the first known folder decides
        its project."""

    def whereabouts(self, agent: str, session_id: str) -> str | None:
        """Return the folder a session began in; None if it is unknown."""

    def has_event(self, agent: str, session_id: str, key: int) -> bool:
        """Return whether a session has an event with this key."""

    def apply(self, agent: str, bucket: Bucket, observed_at: int, *, mutable: bool) -> int:
        """Store what a run of records says about a session; return the number of new events."""

    def settle(self, agent: str, session_id: str) -> None:
        """Release the cached keys of a session whose source has been read."""

    def recount(self, keys: list[int], sessions: list[int]) -> None:
        """Count these responses again in one of these sessions, because other sessions that
        contained them were deleted."""

    def finish(self) -> None:
        """Update everything derived from whole sessions, before the transaction ends."""


class RecordStore(Protocol):
    """Sources and segments: what events are made of."""

    def writer(self) -> StoreWriter:
        """Return a writer with empty caches, so that nothing uncommitted of an earlier one is left
        in it."""

    def price_again(self) -> int:
        """Price everything that other prices than today's were used for, inside the caller's
        transaction; return how many sessions that were."""

    def segments(self, session: Session) -> list[tuple[str, StoredSegment]]:
        """Return the segments of a session's main transcripts, newest generation only, in order,
        each with its path."""

    def sources_of(self, session: Session) -> list[Source]:
        """Return the sources of a session: its transcripts, those of its subagents and files beside
        them; without states."""

    def pieces(self, source: Source) -> list[StoredSegment]:
        """Return the segments of a source's newest generation, in order."""

    def segment_at(self, source: int, generation: int, at: int) -> StoredSegment | None:
        """The segment of a source that has the byte at this place; None if none has."""

    def sources_within(self, filters: Filters) -> list[Source]:
        """The sources of the sessions that filters allow, those that ended last first; without
        their states."""

    def has_segments(self) -> bool:
        """Return whether any segment is stored."""

    def digests(self) -> Iterator[tuple[str, str]]:
        """Yield the address of every segment with the path of its source."""


class CaptureStore(RecordStore, Protocol):
    """What only the machine has that the agents run on: its files and how they were read, pauses,
    the journal."""

    def health(self, agent: str) -> list[SourceHealth]:
        """Return every source of an agent with its counts and errors."""

    def unparsed(self, agent: str) -> list[tuple[str, str, int]]:
        """Return the records that could not be parsed, most frequent first: path, reason, count."""

    def unknown_types(self, agent: str) -> dict[str, int]:
        """Return the record types that no reader knows, most frequent first, with their counts."""

    def pauses(self) -> list[PauseEntry]:
        """Return all pauses: when and where recording was off."""

    def save_pause(self, pause: PauseEntry) -> None:
        """Save a pause, replacing one with the same id, in the caller's transaction."""

    def segment_entries(self) -> list[SegmentEntry]:
        """Return every segment of every source as journal entries, in the order they were seen."""

    def all_entries(self) -> list[Entry]:
        """Return the whole database as journal entries; unreadable parts of a damaged one are left
        out."""


class SessionStore(Protocol):
    """Sessions, found by name, filter or place."""

    def matching(self, filters: Filters, *, limit: int | None, subagents: bool) -> list[Session]:
        """Return the sessions that match, the one that began last first."""

    def children(self, session_ids: list[str]) -> list[Session]:
        """Return the subagents of these sessions, oldest first."""

    def find(self, reference: str, agent: str | None = None) -> Session:
        """Return the session with this id, or the only one whose id begins with it; an exact id
        wins, then main sessions. Raises NotFound, or Ambiguous if several fit."""

    def short_ids(self, names: Iterable[tuple[str, str]], least: int) -> dict[str, str]:
        """Map agent:id of these (agent, id) to the shortest text that `find` takes for this session
        alone: a beginning of its id of at least `least` characters, or agent:id where another agent
        uses the same id."""

    def by_number(self, ids: list[int]) -> dict[int, Session]:
        """Return sessions by number; unknown numbers are left out."""

    def page(
        self, filters: Filters, before: tuple[int, int] | None, limit: int, *, subagents: bool
    ) -> list[tuple[tuple[int, int], Session]]:
        """Return the next page, newest first, after the position of the last session seen; each
        with its own position."""

    def copies(self) -> list[SessionCopy]:
        """Every main session that begins with the records of another that is stored, oldest
        first."""

    def begun_in(self, cwd: str) -> list[SessionFile]:
        """Return the main sessions that began in a folder, each with its transcript and the file's
        size when it was read."""

    def last_ended(self, agent: str) -> int | None:
        """Return the time of the last event of any session of an agent; None if there is none."""

    def last_started(self, agent: str) -> int | None:
        """Return when the newest main session of an agent began; None if there is none."""

    def last_seqs(self, sessions: list[int]) -> dict[int, int]:
        """Return the last seq of each of these sessions."""

    def names(self, sessions: list[int]) -> dict[int, NamedSession]:
        """Return agent, id, parent and project of these sessions, by number."""

    def numbers(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return the numbers of sessions by agent and full id; unknown ones are left out."""

    def others_active(self, sessions: list[int], since: int, until: int) -> bool:
        """Return whether another session of the same project was active between two times."""

    def recent(self, project: int, since: int, limit: int) -> list[tuple[int, int]]:
        """Return the main sessions of a project that were active since a time: number, and the last
        event that belongs to a commit."""

    def count_since(self, project: int, since: int) -> int:
        """Return how many main sessions of a project were active since a time; 0 counts all."""

    def first_started(self, project: int | None) -> int | None:
        """Return when the first session of a project began; None stands for all projects."""

    def files_after(self, session: int, after: int) -> set[str]:
        """Return the files that a session wrote after an event."""

    def agent_version(self, session: int) -> str | None:
        """Return the version of the agent that a session last ran with; None if it is unknown."""

    def places(self) -> list[SessionPlace]:
        """Return the main sessions and their folders, in the order they were first read."""

    def written_paths(self, sessions: list[int]) -> set[str]:
        """Return the files that any of these sessions wrote."""

    def writing_below(self, folders: Iterable[str]) -> set[int]:
        """Return the sessions that wrote below one of these folders."""

    def files_since(self, session: Session, seq: int, since: int) -> set[str]:
        """Return the files that a session wrote after an event, and those of its subagents that
        ended after a time."""

    def active_since(self, since: int) -> list[tuple[str, str]]:
        """Return agent and id of the main sessions whose transcript or hooks had news since a
        time."""

    def briefs(self, sessions: Iterable[int]) -> list[SessionBrief]:
        """Return a summary of each of these sessions."""

    def family(self, agent: str, session_id: str, since: int) -> list[SessionBrief]:
        """Return a session, and those of its subagents that wrote something since a time."""


class ListingStore(Protocol):
    """Sessions as people browse them: one row for a conversation and all that is folded into it."""

    def page(
        self,
        which: ListFilter,
        sort: str,
        limit: int | None,
        after: RowKey | None = None,
        *,
        upwards: bool = False,
    ) -> list[tuple[RowKey, ListedSession]]:
        """At most `limit` rows (None: all) after a place, each with its own, sorted by one of
        LIST_SORTS, latest or most first; `upwards`: those that stand right before the place."""

    def count(self, which: ListFilter, sort: str = "last", before: RowKey | None = None) -> int:
        """How many rows there are, or how many of them stand before a place."""

    def rows(self, heads: list[int]) -> dict[int, ListedSession]:
        """Rows by the numbers of their first sessions."""

    def heads_of(self, sessions: Iterable[int]) -> dict[int, int]:
        """In whose row each of these sessions stands."""

    def members(self, heads: Iterable[int]) -> dict[int, list[int]]:
        """All sessions that stand in each of these rows, its first and subagents included."""

    def totals(self) -> ListTotals:
        """How many rows there are of how many recordings."""

    def folders(self) -> list[FolderCount]:
        """Rows by project, the folder they ran in, and branch."""

    def months(self, which: ListFilter) -> list[PeriodCount]:
        """Rows by month of their last activity, the latest first; commits are not counted."""

    def days(self, which: ListFilter, since: int, until: int) -> list[PeriodCount]:
        """Rows and commits by day of the last activity, between two times."""

    def models(self) -> list[str]:
        """Return the names of all models that sessions used."""

    def branches(self, which: ListFilter, limit: int) -> list[str]:
        """Branches of these rows, the one worked on last first."""


class ConversationStore(Protocol):
    """The events of one session: all, a part, or counts."""

    def events(
        self, session: int, first: int = 0, last: int = ..., *, sizes: bool = True
    ) -> Iterator[StoredEvent]:
        """Yield the events from `first` to `last`, both included, in order. Long results of tools
        are shortened: see `long_texts`; without `sizes` they do not say how long they are."""

    def events_at(self, session: int, seqs: Iterable[int], text_max: int) -> list[StoredEvent]:
        """Return the events at these places in order; longer texts are cut at `text_max`
        characters."""

    def long_texts(self, session: int) -> dict[int, tuple[Source, LongText]]:
        """Where the whole texts of a session's shortened events are, by seq."""

    def stretch(self, session: int, after: int, limit: int) -> list[StoredEvent]:
        """Return up to `limit` events after a place, in order."""

    def tail(self, session: int, limit: int, cut: int) -> list[StoredEvent]:
        """Return the last `limit` messages and calls in order. Texts are cut at `cut` characters;
        data of more than four times that is left out."""

    def long_calls(self, session: int, among: int, size: int) -> list[StoredEvent]:
        """Return, among the last `among` events, the calls and requests larger than `size` bytes,
        newest first."""

    def heads(self, session: int) -> list[EventHead]:
        """Return all events in order, without their text."""

    def call_refs(self, session: int, first: int, last: int) -> list[CallRef]:
        """Return the calls, results, requests, questions and subagents in a range, each with its
        call's id."""

    def result_refs(self, session: int, after: int, idents: Iterable[str]) -> list[CallRef]:
        """Return the results of these calls after a place."""

    def tree(
        self, session: int, seqs: Iterable[int] | None = None
    ) -> list[tuple[int, str | None, str | None]]:
        """Return where these events (or all) are in a conversation that is a tree: seq, own id,
        parent's id."""

    def ids(self, session: int, kind: str) -> dict[int, str | None]:
        """Return the agent's own ids of the events of a kind, by seq."""

    def line_counts(self, session: int, seqs: Iterable[int]) -> dict[int, int]:
        """Return how many lines the texts of these events have."""

    def openings(self, session: int, seqs: Iterable[int], length: int) -> dict[int, str]:
        """Return the first `length` characters of the texts of these events."""

    def tokens_by_turn(self, session: int) -> dict[int, Tokens]:
        """Return tokens by turn, without subagents."""

    def responses(self, session: int, since: int = 0) -> list[Response]:
        """Return the answers of models in a session since a time (ms), oldest first."""

    def failures(self, session: int, since: int = 0) -> list[FailedEvent]:
        """Return failed calls and errors of a session since a time (ms), in order; what a person
        denied is none."""

    def tasks(self, sessions: Iterable[int], length: int) -> dict[int, tuple[str, int | None]]:
        """Return the first `length` characters of each subagent's task, and when it was given."""

    def first_of_kinds(self, session: int, kinds: tuple[str, ...], limit: int) -> list[int]:
        """Return the seqs of the first events of these kinds."""

    def last_of_kind(self, session: int, kind: str) -> int | None:
        """Return the seq of the last event of a kind; None if there is none."""

    def last_seq(self, session: int) -> int:
        """Return the seq of the last event; 0 if there is none."""

    def observed(self, session: int, seq: int) -> tuple[int, int]:
        """Return when the event at a seq was observed, and its seq; if it is gone, those of the
        event before it. Zeros if there is none."""

    def key_of(self, session: int, seq: int) -> int | None:
        """Return an event's key, which is the same when its record is read again."""

    def keys(self, session: int, last: int = ...) -> dict[int, int]:
        """Return the seqs of the events up to `last` by their keys."""

    def prompt_before(self, session: int, seq: int) -> int:
        """Return the seq of a person's last prompt before an event; 0 if there is none."""

    def words(self, session: int, first: int, last: int) -> list[SpokenWord]:
        """Return what was said in a range, in order; of the agent's messages only the last of each
        turn."""

    def work_counts(self, session: int, first: int, last: int) -> tuple[int, int]:
        """Return how many tool calls and questions there are in a range."""

    def last_request(self, session: int, first: int, last: int) -> SpokenWord | None:
        """Return a person's last prompt in a range, cut to one line; None if there is none."""

    def first_request(self, session: int, first: int, last: int) -> int | None:
        """Return the seq of a person's first prompt in a range; None if there is none."""

    def turns(self, session: int, first: int, last: int) -> tuple[int, int]:
        """Return the turns in which a range begins and ends."""

    def turn_end(self, session: int, seq: int) -> int:
        """Return the seq of the last event before a person's next prompt."""

    def time_from(self, session: int, seq: int) -> int | None:
        """Return the time of the first event at or after a place that has one."""

    def commands(
        self, session: int, first: int, last: int | None, names: Iterable[str]
    ) -> list[str]:
        """Return the commands that were run with tools of these names in a range."""

    def active_times(self, session: int, until: int, first: int = 1) -> list[tuple[int, int]]:
        """Return the periods in which something was said or done, from an event on."""

    def moments(self, session: int) -> Iterator[EventMoment]:
        """Yield all events in order, without their text."""

    def copied_marks(self, session: int) -> dict[tuple[int, str, str], int]:
        """Return the seqs of events by (time, kind, text), by which an event is recognised in a
        copy of its session."""

    def prompts_since(self, session: int, seq: int) -> int:
        """Return how many prompts a person wrote after an event."""

    def time_of(self, event: EventRef) -> int | None:
        """Return the time of an event; None if it does not exist or has no time."""


class SearchStore(Protocol):
    """Turns and commits by their words."""

    def match(
        self,
        query: Query,
        filters: Filters,
        limit: int,
        *,
        newest: bool = False,
    ) -> list[Match]:
        """Pieces of turns with all the words as they were typed, best first (or newest first)."""

    def passages(
        self, wanted: PassageQuery, filters: Filters, limit: int, *, newest: bool = False
    ) -> list[Match]:
        """Pieces of turns with a passage of what was said and done that has words in any form,
        best first (or newest first)."""

    def cards(
        self, words: Iterable[str], filters: Filters, limit: int, *, every: bool = False
    ) -> list[CardMatch]:
        """Sessions whose cards have any of the words (or every one) in any form, best first; none
        if the filters name fields, which cards do not have."""

    def owners(self, sessions: Iterable[int]) -> dict[int, SessionOwner]:
        """Whom sessions are counted with; unknown numbers are left out."""

    def turn_of(self, session: int, key: int) -> Match | None:
        """An event, and the turn that it belongs to; None if it is not stored."""

    def stem(self, word: str) -> str:
        """What is left of a word whose forms all find the same passages."""

    def places(
        self, query: Query, wanted: PassageQuery, filters: Filters, limit: int
    ) -> list[TurnMatch]:
        """Turns with the words as typed, and passages with any form of them, at most so many of
        each; unranked, which is cheap however many there are."""

    def commits(self, words: list[str], filters: Filters, limit: int) -> list[LinkedCommit]:
        """Newest first; of the words (ASCII, lower case) each stands somewhere in what is known
        of the commit."""

    def agents_of(self, shas: list[str]) -> dict[str, list[str]]:
        """Which agents took part in commits."""

    def rarity(self, words: Iterable[str]) -> dict[str, float]:
        """How much each word tells: the rarer it is in passages, in any form, the more; more than
        0."""

    def words_like(self, beginning: str, limit: int) -> list[str]:
        """Words of the index that begin so, the common ones first."""


class CheckpointStore(Protocol):
    """Commits with a story, notes and overrides. Writes in the caller's transaction."""

    def of_commits(self, shas: Iterable[str]) -> dict[str, Checkpoint]:
        """Checkpoints by commit, oldest first; commits without one are left out."""

    def like(self, project: int, since: int, patches: list[str]) -> dict[str, Checkpoint]:
        """Those that may be the originals of commits: authored since, or with the same change."""

    def live(self, project: int) -> list[str]:
        """Return the commits that have a story and were not replaced by a rewrite."""

    def of_sessions(self, sessions: Iterable[int]) -> dict[str, Checkpoint]:
        """Return the checkpoints that any of these sessions has a part in."""

    def all(self) -> dict[str, Checkpoint]:
        """Every checkpoint by commit, oldest first."""

    def of_group(self, root: str) -> dict[str, Checkpoint]:
        """Checkpoints of a group, by the id of its first."""

    def beginning(self, column: str, text: str) -> list[str]:
        """Return the commits whose sha (or checkpoint id) begins with a text."""

    def seen(self, shas: Iterable[str]) -> dict[str, tuple[str | None, list[dict[str, Any]]]]:
        """Return, for commits that were examined, why they have no story, and hints."""

    def notes(self, shas: Iterable[str]) -> dict[str, tuple[str, Note]]:
        """Return the note of each commit and its author; several notes are merged, and the latest
        value of a field counts."""

    def overrides(self, shas: Iterable[str]) -> dict[str, list[tuple[str, str, str]]]:
        """Return, by commit: agent, session id, and `link` or `unlink`."""

    def unlinked(self, shas: Iterable[str]) -> list[OverrideEntry]:
        """Sessions that a person took off these commits, oldest statement first."""

    def unlinked_from(self, agent: str, session_id: str) -> list[OverrideEntry]:
        """The same for one session: the commits it was taken off."""

    def said(self, shas: Iterable[str]) -> list[OverrideEntry | NoteEntry]:
        """Return every note and override of these commits."""

    def all_said(self) -> list[OverrideEntry | NoteEntry]:
        """Return every note and override."""

    def spent(self, spans: Iterable[tuple[int, int, int]]) -> Tokens:
        """Return the tokens of ranges of sessions (id, first, last), subagents included; adjoining
        ranges never count the same tokens.

        Agents record the usage of a response with it or right after it, so usage up to the next
        event belongs to the range.
        """

    def known(self, shas: Iterable[str]) -> dict[str, CommitMark]:
        """Return the marks of those commits that have a story."""

    def author_dates(self, project: int) -> set[int]:
        """When the project's commits with a story were authored."""

    def kept_since(self, project: int, since: int, limit: int) -> list[str]:
        """Return the commits with a story that were not replaced, newest first."""

    def rewritten_from(self, project: int, shas: Iterable[str]) -> dict[str, list[str]]:
        """Return the commits that each of these commits replaced."""

    def group_sizes(self, roots: Iterable[str]) -> dict[str, int]:
        """Return how many commits each group has, without replaced ones."""

    def project_of(self, sha: str) -> int | None:
        """The project a commit was seen in."""

    def committed(self, sessions: list[int]) -> dict[int, int]:
        """Return, by session, how many commits contain its work; rewritten commits count once."""

    def cuts(self, session: int) -> set[int]:
        """Return the events of a session that the links of its commits rest on."""

    def last_linked(self, session: int) -> int:
        """Return the last event of a session that belongs to a commit; 0 if none does."""

    def titles(self) -> list[StoryTitle]:
        """Every commit with a story in one line."""

    def save(self, project: int, checkpoint: Checkpoint) -> None:
        """Save a checkpoint, replacing an earlier one of the same commit."""

    def remove(self, commit: str) -> None:
        """Delete a commit's checkpoint, if it has one."""

    def saw(self, project: int, rows: Iterable[SeenCommit]) -> None:
        """Record that these commits were examined."""

    def override(self, entry: OverrideEntry) -> None:
        """Save that a person linked or unlinked a session and a commit."""

    def note(self, entry: NoteEntry) -> None:
        """Save a note about a commit."""


class LinkStore(Protocol):
    """What linking reads and stores. Writes in the caller's transaction."""

    def grown(self) -> list[tuple[int, int]]:
        """Return the sessions with events that linking has not examined: number and project."""

    def hooked_projects(self, after: int) -> set[int]:
        """Return the projects that git's hooks reported in signals after this number."""

    def lengths(self, project: int) -> list[tuple[int, int]]:
        """Return every session of a project: number and last seq."""

    def candidates(self, project: int, sessions: Iterable[int]) -> list[CandidateSession]:
        """Return the sessions of a project, these sessions, and their parents."""

    def candidate(self, agent: str, session_id: str) -> CandidateSession | None:
        """Return a session by name, of any project; None if it is unknown."""

    def activity(self, session: int, most: int | None = None) -> tuple[int, bytes] | None:
        """Return what linking stored of a session's work, and up to which event; None if nothing is
        stored or it is larger than `most` bytes."""

    def origins(self, session: int) -> list[int]:
        """Return the sessions that a session may be a fork of: those that contain the same
        responses. Not every fork says that it is one."""

    def authors(self) -> list[CommitAuthor]:
        """Under which names sessions made commits, and in which folders they ran."""

    def tips(self, project: int) -> list[str] | None:
        """Return the commits that a repository's refs pointed to when it was last examined; None if
        it never was."""

    def save_tips(self, project: int, shas: list[str]) -> None:
        """Save the commits that a repository's refs point to."""

    def save_activity(self, rows: Iterable[tuple[int, int, bytes]]) -> None:
        """Save the work of sessions: number, last event, activity."""

    def save_looked(self, project: int, rows: Iterable[tuple[int, int]]) -> None:
        """Save how far linking has examined each session: number, last event."""


class OutboxStore(Protocol):
    """What waits to be sent to a team, and what was sent. Writes in the caller's transaction.
    Stories are put there as they are saved."""

    def shares(self) -> dict[int, str]:
        """Return the projects that are shared, and how: push, all or ask."""

    def items(
        self, project: int | None = None, states: Iterable[str] = (), limit: int = ...
    ) -> list[OutboxItem]:
        """Return what is in the outbox, in these states or in any, oldest first."""

    def find(self, project: int, kind: str, name: str) -> OutboxItem | None:
        """Return one item; None if it is not there."""

    def counts(self) -> dict[tuple[int, str], int]:
        """Return how many items there are, by project and state."""

    def sent(self, project: int) -> dict[tuple[str, str], SentSource]:
        """Return what the server has of a project's sources, by agent and path."""

    def tries(self, limit: int) -> list[SyncTry]:
        """Return the last tries, newest first."""

    def share_projects(self, shares: Mapping[int, str], now: int) -> None:
        """Set which projects are shared. All stories of a new one are put into the outbox; of one
        that is shared no longer, nothing stays there."""

    def put(self, project: int, kind: str, name: str, state: str, now: int) -> None:
        """Put something into the outbox, or change its state, to be tried at once."""

    def save(self, item: OutboxItem) -> None:
        """Save what came of a try to send an item."""

    def remove(self, item: int) -> None:
        """Delete an item by its number."""

    def set_states(self, items: Iterable[int], state: str) -> None:
        """Set the state of items, to be tried at once."""

    def try_now(self, project: int | None = None) -> None:
        """Let everything be tried at once, whenever it was to be tried again."""

    def save_sent(self, project: int, source: SentSource) -> None:
        """Save what the server has of a source."""

    def forget_sent(self, project: int, agent: str, paths: Iterable[str]) -> None:
        """Forget what the server had of sources."""

    def forget_digests(self, project: int) -> None:
        """Forget what was sent of each story: whichever is sent next is sent whole."""

    def add_try(self, tried: SyncTry) -> None:
        """Save what came of a try; the oldest are deleted."""


class LineStore(Protocol):
    """Who wrote the lines of commits: computed once, deleted when what it rests on changes."""

    def of_commits(self, shas: Iterable[str]) -> dict[str, CommitLines]:
        """Return what is known of commits, with all their files; unknown ones are left out."""

    def of_files(self, places: Iterable[tuple[str, str]]) -> dict[str, CommitLines]:
        """Return what is known of commits, with the files asked for (commit and path) only."""

    def size(self) -> int:
        """Return how many bytes it takes."""

    def save(self, found: Iterable[CommitLines]) -> None:
        """Save what was computed, replacing what was known of these commits, in the caller's
        transaction."""

    def drop(self, shas: Iterable[str]) -> None:
        """Delete what is known of commits, in the caller's transaction."""

    def clear(self) -> None:
        """Delete all of it, in the caller's transaction."""


class ApprovalStore(Protocol):
    """What agents asked to be allowed, and who answered, made of events and signals."""

    def changed(self, after: int) -> list[ChangedSession]:
        """Return the sessions with new events since their approvals were saved, or with signals of
        a higher number than `after` that are about requests."""

    def has_requests(self, session: ChangedSession) -> bool:
        """Return whether a session asked for anything, or was denied something."""

    def save(self, session: ChangedSession, found: list[ApprovalDecision]) -> None:
        """Replace the approvals of a session, in the caller's transaction."""

    def listed(self, query: ApprovalQuery) -> list[ListedApproval]:
        """Return what a query asks for, newest first."""

    def count(self, query: ApprovalQuery) -> int:
        """Return how many there are, whatever the query's limit and place."""


class TelemetryStore(Protocol):
    """What agents' telemetry tells of requests to models, beside what transcripts tell."""

    def requests(self, after: int) -> list[ToldRequest]:
        """Return the requests that were told by signals of a higher number, in their order."""

    def responses(self, agent: str, session_id: str) -> list[StoredResponse]:
        """Return the responses of a session and its subagents, as their transcripts tell."""

    def save(self, matched: list[PricedResponse], side: list[SideRequest]) -> None:
        """Set what responses cost, and add requests that are in no transcript, in the caller's
        transaction."""


class SignalStore(Protocol):
    """Signals: what hooks reported."""

    def of_session(self, agent: str, session_id: str) -> list[Signal]:
        """Return the signals of a session, in order, without what its commands changed."""

    def hooked(self, sha: str) -> list[tuple[str, str]]:
        """Return the sessions in whose process a hook saw the commit being made."""

    def last_heard(self, agent: str) -> int | None:
        """Return when a hook of an agent last reported something, without doctor's probes; None if
        it never did."""

    def newest(self) -> int:
        """Return the number of the newest signal; 0 if there is none."""

    def after(self, number: int) -> list[Signal]:
        """Return the signals with a higher number, in order."""

    def shell_sessions(self, after: int = 0) -> set[SessionName]:
        """Return the sessions of which it was seen what their commands changed, in signals with a
        higher number."""

    def shell_edits(self, agent: str, session_id: str) -> list[ShellEdits]:
        """Return what the commands of a session changed, in order."""

    def skipped_shells(self, since: int) -> list[tuple[int, ShellEdits]]:
        """Return the commands since a time whose changes were not looked at, newest first, each
        with its time."""

    def last_of(self, agent: str, session_id: str, limit: int) -> list[Signal]:
        """Return the last signals of a session, newest first."""

    def attention(self, since: int) -> list[Signal]:
        """Return what the monitor told and people muted since a time (ms), oldest first."""

    def made_in_session(self, shas: Iterable[str]) -> set[str]:
        """Return those of these commits that a hook saw being made inside a session."""

    def unseen_in(self, folders: Iterable[str]) -> set[str]:
        """Return the commits that git's hook reported in these folders and linking has not
        examined."""

    def of_commits(self, shas: Iterable[str]) -> list[CommitSignal]:
        """Return what git's hook reported about these commits, oldest first."""

    def agent_commits(self, since: int) -> list[CommitSignal]:
        """Return what agents' hooks reported about commits since a time, oldest first: one for each
        abbreviated sha that a command printed."""

    def injections(self, agent: str, session_id: str) -> list[Injection]:
        """Return what a session was told of earlier ones, oldest first; how it was used is not in
        it."""

    def told_sessions(self, since: int) -> list[SessionName]:
        """Return the sessions that were told of earlier ones since a time, by name."""

    def told_to(self, source: str) -> list[tuple[str, str, int]]:
        """Return the sessions that were told something from a source (a note's id, …): agent,
        session id and when they first were, the one told last first."""

    def rewrites(self) -> list[tuple[str, str]]:
        """Return the commits that git rewrote, in that order: old and new sha."""


class ProjectStore(Protocol):
    """Projects, their places and aliases."""

    def known(self) -> list[tuple[int, Project]]:
        """Return every project with its number."""

    def places(self) -> dict[str, int]:
        """Return the folders that sessions ran in, each with its project's number."""

    def active(self) -> dict[int, tuple[int, int | None]]:
        """Return, by project, the number of main sessions and the time of the last event."""

    def find(self, identity: str) -> tuple[int, Project] | None:
        """Return a project and its number by identity; None if it is unknown."""

    def save_alias(self, entry: AliasEntry) -> None:
        """Save that a path belongs to a project, in the caller's transaction."""

    def former(self, project: Project) -> list[tuple[str, str | None]]:
        """Return the projects seen at the same path that may be this one before it had a commit or
        a remote: identity and root."""

    def session_counts(self) -> dict[int, int]:
        """Return the number of main sessions by project."""

    def story_counts(self) -> dict[int, int]:
        """Return the number of commits with a story by project."""

    def aliases(self) -> dict[str, list[str]]:
        """Return, by identity, the paths that a person assigned to that project."""


class MemoryStore(Protocol):
    """What is remembered of sessions, derived from their events."""

    def waiting(self, version: int) -> list[WaitingSession]:
        """Return the sessions that have changed since their memory was made, or whose memory was
        made by other rules than those of `version`."""

    def events(self, session: WaitingSession) -> Iterator[StoredEvent]:
        """Yield the session's own events with what memory is made of: the words of what was said,
        the data of what was done, and the beginning of what was printed. A call has its words only
        in its data."""

    def save(self, session: WaitingSession, memory: SessionMemory, version: int) -> None:
        """Replace what is remembered of a session, in the caller's transaction."""

    def delete(self, session: int) -> None:
        """Delete what is remembered of a session, in the caller's transaction."""

    def name_session(self, session: int, title: ProposedTitle) -> None:
        """Call a session so if its title is worth less, in the caller's transaction."""

    def summary(self, session: int) -> SessionSummary | None:
        """The summary of a session; None if none was made yet."""

    def observations(self, wanted: MemoryFilter, limit: int | None) -> list[StoredObservation]:
        """Return at most `limit` observations, newest first."""

    def observation(self, key: str) -> StoredObservation:
        """Return the observation whose key begins so; raises NotFound, or Ambiguous if there are
        several."""

    def note_page(
        self, wanted: MemoryFilter, limit: int, after: NotePlace | None
    ) -> list[StoredObservation]:
        """Return up to `limit` observations that come after one, newest first."""

    def count(self, wanted: MemoryFilter) -> NoteCounts:
        """Return how many observations there are."""

    def projects(self) -> list[ProjectNotes]:
        """Return the projects that have observations, the one with the newest first."""

    def short_keys(self, keys: Iterable[str]) -> dict[str, str]:
        """Map keys to their beginnings that fit no other observation, of 8 characters or more."""

    def state(self, statement: NoteStatement) -> None:
        """Keep what was said about an observation, and change the observation so, in the caller's
        transaction."""

    def said(self, key: str) -> list[NoteStatement]:
        """Return what was said about an observation, in order."""

    def all_said(self) -> list[NoteStatement]:
        """Return what was said about all observations, in order."""

    def model_calls(self, since: int) -> list[ModelCall]:
        """Return what models were asked since a time."""

    def unasked(self, since: int, until: int, limit: int) -> list[WaitingSession]:
        """Return main sessions whose last event is between two times and that no model was asked
        about, the newest first."""

    def keep_said(self, kept: Iterable[NoteStatement]) -> None:
        """Delete all other statements and what they wrote, in the caller's transaction."""

    def commands(self, projects: Iterable[int]) -> list[CommandCount]:
        """Return the building, testing and checking commands of projects, those that succeeded
        most often first."""

    def changed_commands(self) -> list[int]:
        """Return the projects whose sessions ran other commands since their notes were made."""

    def project_commands(self, project: int) -> list[ProjectCommand]:
        """Return the commands of a project that passed, those that passed most often first."""

    def save_commands(self, project: int, notes: Iterable[tuple[int, Observation]]) -> None:
        """Replace the notes on a project's commands, each with the number of the session in which
        it passed last, in the caller's transaction."""

    def last_user(self, kind: str, name: str, projects: Iterable[int]) -> int | None:
        """Return the last session of these projects that ran a command of the family `name`
        (`run`), or read or wrote a file of this name or below this folder (`file`); None if there
        is none."""

    def printed(self, session: int) -> list[str]:
        """Return what the tools of a session printed; long results are shortened."""

    def touched(self, session: int) -> set[str]:
        """Return the files that a session read or wrote, as the agent named them."""

    def questions(self, session: int) -> list[str]:
        """Return what a session asked Whyfor: the texts of its calls that name it."""

    def files(self, projects: Iterable[int], limit: int) -> list[TouchedFile]:
        """Return the files that sessions of projects read or wrote most recently."""


class TaskStore(Protocol):
    """Tasks: what trackers and people say of them, and which part of which session was spent on
    them. Runs are derived from events, statements and issues, and know nothing else."""

    def waiting(self, version: int) -> list[WaitingSession]:
        """Return the sessions whose runs are to be made: they have changed, something was said of
        them, or other rules than those of `version` made them."""

    def events(self, session: WaitingSession) -> list[StoredEvent]:
        """Return the events of a session that may tell of a task: prompts, answers to requests,
        and calls that name a tracker or make a commit. Long texts are cut."""

    def save(self, session: WaitingSession, runs: Iterable[TaskRun], version: int) -> None:
        """Replace the runs of a session, in the caller's transaction."""

    def runs(
        self,
        *,
        keys: Iterable[str] | None = None,
        projects: Iterable[int] | None = None,
        since: int | None = None,
    ) -> list[StoredRun]:
        """Return the runs of tasks, oldest session first; `since`: only of sessions that were
        active after a time."""

    def keys_like(self, key: str, limit: int) -> list[str]:
        """Return the keys of tasks that begin so, whatever the case of their letters."""

    def ended(self, sessions: Iterable[int], words: Iterable[str]) -> dict[int, int]:
        """Return which of these sessions a hook said the end of, with one of these words and
        after their last event, and when."""

    def save_issue(self, issue: TaskIssue) -> None:
        """Save what a tracker says of a task, in the caller's transaction; the session that
        closed it waits for new runs."""

    def issues(self, project: str | None = None) -> list[TaskIssue]:
        """Return what trackers say of the tasks of a project (by identity), or of all."""

    def closed_by(self, session_id: str) -> list[TaskIssue]:
        """Return the issues that a tracker says this session closed."""

    def keep_issues(self, kept: Iterable[TaskIssue]) -> None:
        """Delete all issues but these, in the caller's transaction."""

    def state(self, statement: TaskStatement) -> None:
        """Save what was said, in the caller's transaction; its session waits for new runs."""

    def said(
        self, *, keys: Iterable[str] | None = None, session: tuple[str, str] | None = None
    ) -> list[TaskStatement]:
        """Return what was said of these tasks, or about this session (agent and id), in order."""

    def keep_said(self, kept: Iterable[TaskStatement]) -> None:
        """Delete all statements but these, in the caller's transaction."""


class VectorStore(Protocol):
    """Vectors of sessions, by which they are found by meaning. Derived, like memory, but only if
    somebody asks for it."""

    def waiting(self, model: str, limit: int | None = None) -> list[WaitingSession]:
        """Return at most `limit` main sessions that have no vectors of this model, or old ones,
        newest first."""

    def save(self, session: WaitingSession, vectors: SessionVectors) -> bool:
        """Replace the vectors of a session, in the caller's transaction; False, with nothing
        written, if the session has changed or gone since it was read."""

    def load(self, model: str, sessions: Iterable[int]) -> dict[int, SessionVectors]:
        """Return the vectors of this model, by session; those without are left out."""

    def bits(self, model: str, filters: Filters) -> list[VectorBits]:
        """Return the signs of all vectors of this model; none if the filters name fields, which
        vectors do not have."""

    def count(self, model: str) -> VectorCounts:
        """Return how many there are, and how many sessions wait for theirs."""

    def exist(self, model: str) -> bool:
        """Return whether any session has vectors of this model."""

    def clear(self) -> None:
        """Delete all of every model, in the caller's transaction."""


class FeedStore(Protocol):
    """The changes since a moment, for subscribers that have read everything before it."""

    def lengths(self) -> dict[int, int]:
        """Return every session's last seq."""

    def ends(self) -> tuple[int, int]:
        """Return two numbers: all changes after the first are known; the second is the latest."""

    def after(self, number: int, limit: int) -> list[ChangeRecord]:
        """Return up to `limit` changes after a number, in order."""

    def of_sessions(self) -> dict[int, int]:
        """Return, by session, the number of the latest change to one of its events."""

    def begin_anew(self, last: int = 0) -> None:
        """Drop the log, in the caller's transaction: every subscriber, also one that has read up to
        `last`, must read everything again."""

    def prune(self) -> None:
        """Delete the oldest changes if there are too many, in the caller's transaction."""


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

    def costs(self, filters: Filters) -> list[CostRow]:
        """Return what responses used by day, agent, project and model; the times of the filter are
        those of the responses, not of their sessions."""

    def turns_by_time(self, filters: Filters, since: int, until: int) -> list[tuple[int, int]]:
        """By quarter of an hour since 1970, in order: how many turns of main sessions began."""

    def first_at(self, filters: Filters) -> int | None:
        """When the oldest thing that is kept happened, whatever the period."""

    def wrong(self, filters: Filters) -> list[FailedStep]:
        """What went wrong in main sessions."""

    def turns_until_done(self, filters: Filters) -> list[int]:
        """Return, for each request that ended in commits, the turns that went into them."""

    def failed_commands(self, filters: Filters) -> list[FailedCommand]:
        """Return the commands that failed in sessions that fit, in their order."""

    def turn_times(self, filters: Filters) -> list[TurnTime]:
        """Return when people asked, and when the last response to it was there, session by
        session."""

    def turn_costs(self, project: str, since: int) -> list[int]:
        """Return what each turn of a project's sessions cost since a time (ms), in billionths of a
        dollar; turns without a known price are left out."""

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


class RemovalStore(Protocol):
    """Deletes sessions, in the caller's transaction."""

    def shared_usage(self, sessions: Iterable[int]) -> tuple[list[int], list[int]]:
        """Return the keys of usage that others share with these sessions (forks, resumed
        sessions), and the ids of those others."""

    def delete_session(self, session: int) -> None:
        """Delete a session and everything that belongs to it."""

    def empty_session(self, session: int) -> None:
        """Delete everything read from a session's records; the session, its folder and its links
        stay."""

    def drop_segments(self, source: int) -> list[str]:
        """Delete the segments of a source, by its number; return their addresses."""

    def unused_digests(self, digests: Iterable[str]) -> list[str]:
        """Return which of these are the address of no segment, whoever stored it, each once."""


class ForgetStore(RemovalStore, Protocol):
    """What forget reads and deletes, in the caller's transaction."""

    def tombstones(self, home: Path) -> Tombstones:
        """Return everything that was ever forgotten, with the salt stored in `home`."""

    def save_tombstones(self, entry: ForgottenEntry) -> None:
        """Save what was forgotten."""

    def reasons(self) -> dict[str, str]:
        """Return the commits that have no story because of a forget, and why."""

    def descendants(self, names: Iterable[SessionName]) -> set[SessionName]:
        """Return these sessions and the subagents that worked for them."""

    def children_begun(self, name: SessionName, first: int, last: int) -> set[SessionName]:
        """Return the subagents of a session that began between two times."""

    def has_transcript(self, name: SessionName) -> bool:
        """Return whether a session has a file of its own; otherwise only another session's file
        describes it."""

    def sessions_before(self, when: int) -> set[SessionName]:
        """Return the main sessions that ended before a time."""

    def subagents_before(self, when: int) -> set[SessionName]:
        """Return the subagents with a transcript of their own that ended before a time."""

    def has_signal_before(self, when: int) -> bool:
        """Return whether a hook reported anything before a time."""

    def rewrites(self, sha: str) -> set[str]:
        """Return a commit together with all its earlier and later versions."""

    def record_count(self, name: SessionName) -> int:
        """Return how many records were read from a session's own files."""

    def forks(self, session_id: str) -> set[SessionName]:
        """Return the sessions that say they come from this one."""

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
        """Return the row ids of these signals; of several equal ones, as many as are given."""

    def clear_folder(self, session: int) -> None:
        """Clear the folder of a session."""

    def reset_sources(self, names: Iterable[SessionName]) -> None:
        """Reset the sources of these sessions and their subagents, as if nothing of them had been
        read. The size and time of their files stay, so that ingest does not open them again."""

    def delete_signals(self, ids: Iterable[int]) -> None:
        """Delete signals. New ones get the freed ids, so linking must not count them as done."""

    def delete_titles(self, keys: Iterable[int]) -> None:
        """Delete titles by the keys of the messages they name."""

    def put_titles(self, titles: dict[int, str]) -> None:
        """Save titles by the keys of the messages they name."""

    def drop_hints(self, names: set[SessionName]) -> None:
        """Delete the hints of commits that name these sessions."""

    def keep_notes(self, kept: Iterable[tuple[str, int]]) -> None:
        """Delete all notes but these: commit and time."""

    def keep_overrides(self, kept: Iterable[tuple[str, str, str]]) -> None:
        """Delete all overrides but these: commit, agent and session id."""

    def linked_whole(self, sessions: Iterable[int]) -> list[tuple[int, int]]:
        """Return which of these sessions linking has examined to their end: project, session."""

    def renumber_linked(self, sessions: Iterable[int], whole: list[tuple[int, int]]) -> None:
        """After sessions were read again: mark those in `whole` as examined to their end, and the
        others as not examined."""

    def move_segments(self, segments: Mapping[tuple[str, str, int, int], SegmentEntry]) -> None:
        """Set the current addresses of segments, given by agent, path, generation and first
        byte."""

    def trial(self) -> AbstractContextManager[None]:
        """Run a transaction that is always rolled back."""

    def overwrite_deleted(self) -> None:
        """Overwrite what is deleted from now on in the database file."""

    def scrub(self, copy: Path) -> bool:
        """Remove every deleted byte from the database files; return False if a reader that is still
        open keeps the log in use.

        Full text search keeps deleted words until its parts are merged, SQLite keeps deleted pages
        until the file is rewritten, and the log keeps what was there before. The file is rewritten
        through a copy in our own directory, because a plain VACUUM would write everything to the
        system's temporary directory.
        """


class SharedStore(Protocol):
    """What a machine and a team server both have, with one facet for each kind of question.

    A server does not link commits, hear hooks, or read agents' files: machines do, and send what
    came of it. What they send is in `records`; what they keep to themselves is in Store.
    """

    @property
    def records(self) -> RecordStore: ...

    @property
    def sessions(self) -> SessionStore: ...

    @property
    def listing(self) -> ListingStore: ...

    @property
    def conversation(self) -> ConversationStore: ...

    @property
    def search(self) -> SearchStore: ...

    @property
    def checkpoints(self) -> CheckpointStore: ...

    @property
    def projects(self) -> ProjectStore: ...

    @property
    def memory(self) -> MemoryStore: ...

    @property
    def vectors(self) -> VectorStore: ...

    @property
    def tasks(self) -> TaskStore: ...

    @property
    def removal(self) -> RemovalStore: ...

    @property
    def signals(self) -> SignalStore: ...

    @property
    def feed(self) -> FeedStore: ...

    @property
    def stats(self) -> StatsStore: ...

    @property
    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""

    def begin(self) -> None:
        """Begin a write transaction, unless one is open."""

    def rollback(self) -> None:
        """Roll back the open transaction, if there is one."""

    def close(self) -> None:
        """Close it; closing twice is fine."""

    def mark(self, name: str) -> int:
        """Return the number stored under a name; 0 if there is none."""

    def set_mark(self, name: str, number: int) -> None:
        """Store a number under a name, in the caller's transaction."""

    def transaction(self) -> AbstractContextManager[None]:
        """Write all of what happens inside, or nothing."""


class UploadStore(Protocol):
    """What people shared, each person's by itself. Writes in the caller's transaction."""

    def stories(
        self, shas: Iterable[str], patches: Iterable[str] = (), limit: int = ...
    ) -> list[SharedStory]:
        """Return who shared what of these commits, or of commits with the same change; those with
        the same id first."""

    def people(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the names of people of the caller's projects."""

    def authors(self) -> list[int]:
        """Return the people who shared sessions with the project."""

    def owners_of(self, sessions: Iterable[int]) -> dict[int, int]:
        """Return whose these sessions are, by their numbers."""

    def owners(self, agent: str, session_id: str) -> list[int]:
        """Return the people who shared a session of this name."""

    def named(self, agent: str | None, beginning: str) -> list[tuple[str, str]]:
        """Return up to two sessions, as agent and id, whose ids begin so."""

    def sources(self, person: int, agent: str, session_id: str) -> list[SessionUpload]:
        """Return what one person shared of a session and its subagents, as it is stored now."""

    def event_keys(
        self, person: int, agent: str, session_id: str, seqs: Iterable[int]
    ) -> dict[int, int]:
        """Return the keys of events of one person's session, by seq."""

    def has_digest(self, digest: str) -> bool:
        """Return whether an object is part of something that the caller may read."""

    def buried(self, kind: str, names: Iterable[str]) -> set[str]:
        """Return which of these anybody of the project has taken back for good."""

    def bury(self, kind: str, names: Iterable[str], at: int) -> None:
        """Take something back for good."""

    def log(self, kind: str, names: Iterable[str], at: int) -> None:
        """Tell those who keep copies that something changed."""

    def changes(self, after: int, limit: int) -> list[SharedChange]:
        """Return up to `limit` changes after a number, in order."""

    def last_change(self) -> int:
        """Return the number of the latest change; 0 if there is none."""


class TeamStore(SharedStore, Protocol):
    """The database of a team server."""

    @property
    def uploads(self) -> UploadStore: ...


class Store(SharedStore, Protocol):
    """The database of one machine."""

    @property
    def capture(self) -> CaptureStore: ...

    @property
    def links(self) -> LinkStore: ...

    @property
    def lines(self) -> LineStore: ...

    @property
    def approvals(self) -> ApprovalStore: ...
    @property
    def telemetry(self) -> TelemetryStore: ...

    @property
    def outbox(self) -> OutboxStore: ...

    @property
    def forget(self) -> ForgetStore: ...

    def commit(self, journal: Journal | None = None) -> None:
        """Commit the open transaction; with a journal, append its pending entries first.

        Raises Disagreement, with nothing written, if the journal is not as this database left it.
        """

    def transaction(self, journal: Journal | None = None) -> AbstractContextManager[None]:
        """Write all of what happens inside, or nothing; with a journal, its pending entries too."""

    def total_changes(self) -> int:
        """Return how many rows this connection has changed."""

    def version(self) -> int:
        """Return a number that differs after another connection has changed the database."""

    def in_place(self) -> bool:
        """Return whether this is still the database at its path."""

    def is_whole(self) -> bool:
        """Return whether it can be read and has every table of its version."""

    def check(self, *, quick: bool = False) -> list[str]:
        """Return what the database finds wrong with itself, indexes included; empty if all is
        well. A quick check does not look into the words of the search index."""

    def journal_end(self) -> JournalMark | None:
        """Return how the journal ended when this database was last written; None if that was never
        recorded."""

    def save_journal_end(self, mark: JournalMark) -> None:
        """Record, in the caller's transaction, that the database has everything up to this end of
        the journal."""
