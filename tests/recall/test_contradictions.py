"""A later note refutes an earlier one only if it plainly says the opposite about the same thing."""

from __future__ import annotations

from tests.cases import check_each
from whyfor.model.memory import Observation, StoredObservation
from whyfor.recall.contradictions import contradicts
from whyfor.recall.note_standing import supersede_notes

NOW = 1_777_629_600_000
OPPOSITE = (
    ("The cache does not survive a restart of the server.", "The cache survives a server restart."),
    ("`export` works with partial session ids.", "`export` fails with partial session ids."),
    ("Retries are disabled in the payment client.", "Retries are enabled in the payment client."),
    (
        "The import isn't slow because of the index on prices.",
        "The import is slow because of the index on prices.",
    ),
    ("The lock is taken after the file is opened.", "The lock is taken before the file is opened."),
    ("We chose not to keep the old table.", "We chose to keep the old table."),
)
NOT_OPPOSITE = (
    ("The cache survives a server restart.", "The cache survives a restart of the server."),
    ("The basket is not slow any more.", "The import is slow because prices are read twice."),
    (
        "The check fails because no distribution is installed yet.",
        "The check cannot run because no distribution is installed.",
    ),
    (
        "The hook does not run in a bare repository because it has no work tree.",
        "The hook runs in each work tree of a repository.",
    ),
    (
        "The release failed because a step changes the table, but none was added to create it.",
        "The cause: a step changes the table, but it was never added that creates it.",
    ),
    ("The page is not drawn.", "The page is drawn twice because of the second listener."),
    (
        "The values are silently turned into text, so the claims are too strong.",
        "Values that are not text are silently turned into text, so there is no harm.",
    ),
)
RULES = (
    ("Use npm, not pnpm.", "Use pnpm, not npm."),
    ("Prefer tabs over spaces", "Prefer spaces over tabs"),
    ("Never squash commits before a merge.", "Always squash commits before a merge."),
)


def note(key: str, text: str, kind: str = "discovery", **more: object) -> StoredObservation:
    given = {"state": "stated", "turn": 1, "at": NOW, "narrative": text, "anchors": ("a.py",)}
    made = Observation(key=key, type=kind, title=text, **{**given, **more})  # type: ignore[arg-type]
    return StoredObservation(made, "claude", "s1", None, "shop", "main")


def test_opposite_statements_contradict_each_other() -> None:
    def check(case: tuple[str, str]) -> None:
        newer, older = case
        assert contradicts(note("new", newer), note("old", older))
        assert contradicts(note("new", older), note("old", newer))

    check_each(((case[0], case) for case in OPPOSITE), check)


def test_statements_about_something_else_do_not() -> None:
    def check(case: tuple[str, str]) -> None:
        assert not contradicts(note("new", case[0]), note("old", case[1]))
        assert not contradicts(note("new", case[1]), note("old", case[0]))

    check_each(((case[0], case) for case in NOT_OPPOSITE), check)


def test_a_person_who_changes_a_rule_refutes_the_former_one() -> None:
    def check(case: tuple[str, str]) -> None:
        pair = note("new", case[0], "rule", anchors=()), note("old", case[1], "rule", anchors=())
        newer, older = supersede_notes(pair)
        assert (newer.observation.state, newer.superseded_by) == ("stated", None)
        assert (older.observation.state, older.superseded_by) == ("refuted", "new")

    check_each(((case[0], case) for case in RULES), check)


def test_an_agent_refutes_neither_a_person_nor_what_was_recorded() -> None:
    newer, older = OPPOSITE[0]
    said = note("new", newer)
    assert not contradicts(said, note("old", older, "rule"))
    assert not contradicts(said, note("old", older, by="person"))
    assert not contradicts(said, note("old", older, pinned=True))
    assert not contradicts(said, note("old", older, state="verified"))
    assert not contradicts(note("new", newer, state="hypothesis"), note("old", older))
    assert contradicts(note("new", newer, by="person"), note("old", older, by="person"))


def test_only_notes_of_one_project_about_one_thing_are_compared() -> None:
    newer, older = (note(key, text) for key, text in zip(("new", "old"), OPPOSITE[0], strict=True))
    assert supersede_notes([newer, older])[1].observation.state == "refuted"
    elsewhere = note("old", OPPOSITE[0][1], anchors=("b.py",))
    assert supersede_notes([newer, elsewhere])[1] == elsewhere
    named = note("old", OPPOSITE[0][1], anchors=(), concepts=("Cache",))
    also = note("new", OPPOSITE[0][0], anchors=(), concepts=("Cache",))
    assert supersede_notes([also, named])[1].superseded_by == "new"
