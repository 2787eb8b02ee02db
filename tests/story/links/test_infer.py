"""Links on miniature histories: who is linked, who is not, and by what evidence."""

from __future__ import annotations

import msgspec
import pytest

from tests.story.links.histories import MINUTE, START, History, Session, body, change, sha
from whyfor.story.links.infer import PriorLink

# -- content: a person commits --------------------------------------------------------------------


def test_a_person_who_commits_an_agents_work_is_linked_by_content() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    made = history.commit("a", 5, change("src/cart.py", body("cart")))
    (link,), _ = history.link({1: agent})
    assert (link.commit, link.session, link.evidence, link.role) == (made, 1, "content", "wrote")
    assert (link.lines, link.share, link.seq, link.confidence) == (6, 1.0, 1, "high")


def test_an_unrelated_commit_while_an_agent_is_open_is_not_linked() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    other = history.commit("a", 2, change("docs/guide.md", body("guide")))
    same_file = history.commit("b", 3, change("src/cart.py", body("human")))
    links, _ = history.link({1: agent})
    assert [(link.commit, link.evidence) for link in links] == [(same_file, "nearby")]
    assert other not in {link.commit for link in links}


def test_the_same_lines_in_another_file_are_no_evidence() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    history.commit("a", 2, change("src/other.py", body("cart")))
    assert history.told({1: agent}) == {sha("a"): {}}


def test_a_path_the_agent_deleted_and_a_person_made_anew_is_not_linked() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    agent.wrote(2, "src/cart.py", kind="gone")
    history.commit("a", 9, change("src/cart.py", body("cart"), status="A"))
    assert history.told({1: agent}) == {sha("a"): {}}


def test_a_path_below_a_folder_the_agent_deleted_is_not_linked() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/shop/cart.py", body("cart"))
    agent.wrote(2, "src/shop", kind="gone")
    history.commit("a", 9, change("src/shop/cart.py", body("cart"), status="A"))
    assert history.told({1: agent}) == {sha("a"): {}}


def test_edits_by_hand_after_all_agent_work_is_committed_are_not_linked() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    history.commit("a", 2, change("src/cart.py", body("cart")))
    history.commit("b", 3, change("src/cart.py", [], body("cart")))  # thrown out
    history.commit("c", 4, change("src/cart.py", body("cart")))  # and typed again
    assert history.told({1: agent}) == {sha("a"): {1: "content"}, sha("b"): {}, sha("c"): {}}


def test_lines_the_agent_took_back_are_not_its_own_any_more() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    agent.wrote(2, "src/cart.py", [], body("cart"))
    history.commit("a", 30, change("src/cart.py", body("cart")))
    assert history.told({1: agent}) == {sha("a"): {}}


def test_work_split_over_two_commits_is_linked_to_both() -> None:
    history, agent = History(), Session()
    lines = body("cart", 12)
    first = agent.wrote(1, "src/cart.py", lines[:6])
    second = agent.wrote(2, "src/cart.py", lines[6:])
    history.commit("a", 3, change("src/cart.py", lines[:6]))
    history.commit("b", 4, change("src/cart.py", lines[6:]))
    links, _ = history.link({1: agent})
    assert [(link.commit, link.seq) for link in links] == [
        (sha("a"), first.seq),
        (sha("b"), second.seq),
    ]


def test_two_agents_in_one_folder_get_each_their_own() -> None:
    history, one, two = History(), Session(), Session()
    one.wrote(1, "src/cart.py", body("one"))
    two.wrote(2, "src/till.py", body("two"))
    history.commit("a", 3, change("src/cart.py", body("one")))
    history.commit("b", 4, change("src/till.py", body("two")))
    assert history.told({1: one, 2: two}) == {sha("a"): {1: "content"}, sha("b"): {2: "content"}}


def test_two_agents_in_one_commit_are_both_linked() -> None:
    history, one, two = History(), Session(), Session()
    one.wrote(1, "src/cart.py", body("one"))
    two.wrote(2, "src/till.py", body("two"))
    history.commit("a", 3, change("src/cart.py", body("one")), change("src/till.py", body("two")))
    links, _ = history.link({1: one, 2: two})
    assert {link.session: link.share for link in links} == {1: 0.5, 2: 0.5}


def test_who_wrote_a_line_last_gets_the_credit() -> None:
    history, one, two = History(), Session(), Session()
    one.wrote(1, "src/cart.py", body("cart"))
    two.wrote(2, "src/cart.py", body("cart"))
    history.commit("a", 3, change("src/cart.py", body("cart")))
    assert history.told({1: one, 2: two}) == {sha("a"): {2: "content"}}


def test_lines_taken_out_count_like_lines_put_in() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", [], body("old"))
    history.commit("a", 3, change("src/cart.py", [], body("old")))
    assert history.told({1: agent}) == {sha("a"): {1: "content"}}


def test_a_file_removed_through_the_shell_is_linked() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/old", kind="gone")
    history.commit("a", 3, change("src/old/cart.py", [], body("cart"), status="D"))
    history.commit("b", 5, change("src/old/cart.py", body("cart"), status="A"))
    history.commit("c", 6, change("src/old/cart.py", [], body("cart"), status="D"))
    assert history.told({1: agent}) == {sha("a"): {1: "content"}, sha("b"): {}, sha("c"): {}}


def test_a_rename_through_the_shell_is_linked() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/new.py", kind="moved", old="src/old.py")
    history.commit("a", 3, change("src/new.py", status="R", old_path="src/old.py"))
    assert history.told({1: agent}) == {sha("a"): {1: "content"}}


def test_what_was_written_before_a_file_moved_counts_at_its_new_place() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/old.py", body("cart"))
    agent.wrote(2, "lib/new.py", kind="moved", old="src/old.py")
    history.commit("a", 3, change("lib/new.py", body("cart"), status="A"))
    assert history.told({1: agent}) == {sha("a"): {1: "content"}}


def test_what_was_committed_before_a_file_moved_is_used_up_at_its_new_place() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/old.py", body("cart"))
    history.commit("a", 2, change("src/old.py", body("cart"), status="A"))
    agent.wrote(3, "lib/new.py", kind="moved", old="src/old.py")
    history.commit("b", 4, change("lib/new.py", status="R", old_path="src/old.py"))
    # lines in another order
    history.commit("c", 5, change("lib/new.py", body("cart"), body("cart")))
    assert history.told({1: agent}) == {
        sha("a"): {1: "content"},
        sha("b"): {1: "content"},
        sha("c"): {},
    }


def test_old_lines_in_a_file_written_as_a_whole_are_not_credited_when_a_person_moves_them() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"), kind="whole")
    history.commit("a", 3, change("src/cart.py", body("cart"), body("cart")))
    assert history.told({1: agent}) == {sha("a"): {}}


def test_one_line_by_chance_days_before_is_no_link() -> None:
    history, agent = History(), Session()
    agent.wrote(0, "src/cart.py", ["total = price * count"])
    history.commit(
        "a", 3 * 24 * 60, change("src/cart.py", ["total = price * count", *body("human", 3)])
    )
    assert history.told({1: agent}) == {sha("a"): {}}


def test_few_lines_of_a_large_commit_are_a_link_only_while_they_are_fresh() -> None:
    lines = body("cart", 3)
    for minute, linked in ((10, True), (3 * 24 * 60, False)):
        history, agent = History(), Session()
        agent.wrote(0, "src/cart.py", lines)
        history.commit("a", minute, change("src/cart.py", [*lines, *body("human", 37)]))
        assert bool(history.told({1: agent})[sha("a")]) is linked


def test_lines_older_than_a_month_are_no_evidence() -> None:
    history, agent = History(), Session()
    agent.wrote(0, "src/cart.py", body("cart"))
    history.commit("a", 31 * 24 * 60, change("src/cart.py", body("cart")))
    assert history.told({1: agent}) == {sha("a"): {}}


def test_lines_written_after_the_commit_are_no_evidence() -> None:
    history, agent = History(), Session()
    history.commit("a", 1, change("src/cart.py", body("cart")))
    agent.wrote(2, "src/cart.py", body("cart"))
    assert history.told({1: agent}) == {sha("a"): {}}


def test_in_a_small_commit_short_lines_count_too() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", ["x = 2"], ["x = 1"])
    history.commit("a", 3, change("src/cart.py", ["x = 2"], ["x = 1"]))
    assert history.told({1: agent}) == {sha("a"): {1: "content"}}


def test_generated_files_are_no_evidence() -> None:
    history, agent = History(), Session()
    for path in ("package-lock.json", "dist/app.js", "web/app.min.js", "poetry.lock"):
        agent.wrote(1, path, body(path))
        history.commit(path, 3, change(path, body(path)))
    assert set(map(len, history.told({1: agent}).values())) == {0}


def test_white_space_and_line_ends_do_not_matter() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", [f"{line}\r" for line in body("cart")])
    history.commit("a", 3, change("src/cart.py", [f"\t{line}  " for line in body("cart")]))
    assert history.told({1: agent}) == {sha("a"): {1: "content"}}


# -- where files are -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "linked"),
    [
        ("/code/shop/", True),
        ("/code/shop/.claude/worktrees/fix-1/", True),
        ("/home/ada/clones/shop/", True),
        ("C:/code/shop/", True),
        ("/code/shop/packages/web/", False),
        ("", True),
    ],
)
def test_a_file_is_known_in_any_worktree_and_clone_but_not_in_another_folder(
    root: str, linked: bool
) -> None:
    history, agent = History(), Session(root)
    agent.wrote(1, "src/index.ts", body("index"))
    history.commit("a", 3, change("src/index.ts", body("index")))
    assert bool(history.told({1: agent}, folders=["/code/shop"])[sha("a")]) is linked


def test_a_session_from_elsewhere_counts_only_below_the_projects_folders() -> None:
    history, here, there = History(), Session(), Session("/code/other/")
    here.wrote(1, "src/cart.py", body("cart"))
    there.wrote(2, "src/till.py", body("till"))
    history.commit("a", 3, change("src/cart.py", body("cart")))
    history.commit("b", 4, change("src/till.py", body("till")))
    told = history.told({1: here, 2: there}, foreign={1, 2}, folders=["/code/shop"])
    assert told == {sha("a"): {1: "content"}, sha("b"): {}}


# -- output: the agent commits -------------------------------------------------------------------


def test_a_printed_hash_is_certain() -> None:
    history, agent = History(), Session()
    ran = agent.ran(3, "git commit -m 'Add cart'", (sha("a")[:7], "Add cart"))
    history.commit("a", 3.01, change("src/cart.py", body("cart")), subject="Add cart")
    (link,), _ = history.link({1: agent})
    assert (link.evidence, link.role, link.confidence, link.seq) == (
        "output",
        "made",
        "high",
        ran.seq,
    )


def test_several_commits_of_one_command_are_all_linked() -> None:
    history, agent = History(), Session()
    agent.ran(3, "./release.sh", (sha("a")[:7], "One"), (sha("b")[:9], "Two"), seconds=60)
    history.commit("a", 3.2, change("a.txt", body("a")), subject="One")
    history.commit("b", 3.9, change("b.txt", body("b")), subject="Two")
    assert history.told({1: agent}) == {sha("a"): {1: "output"}, sha("b"): {1: "output"}}


def test_a_hash_that_exists_no_more_is_found_by_subject_and_author_date() -> None:
    history, agent = History(), Session()
    agent.ran(3, "git commit -m 'Add cart'", ("0123abc", "Add cart"))
    history.commit("b", 90, change("src/cart.py", body("cart")), subject="Add cart", authored=3.01)
    history.commit("c", 200, change("src/cart.py", body("more")), subject="Add cart")
    assert history.told({1: agent}) == {sha("b"): {1: "output"}, sha("c"): {}}


def test_fixtures_that_print_commits_are_no_evidence() -> None:
    history, agent = History(), Session()
    agent.ran(3, "pytest -s", ("0123abc", "Add cart"), seconds=30)
    agent.ran(5, "", (sha("b")[:7], "Add till"))  # an old log, shown again
    history.commit("a", 1, change("src/cart.py", body("cart")), subject="Add cart")
    history.commit("b", 2, change("src/till.py", body("till")), subject="Add till")
    assert history.told({1: agent}) == {sha("a"): {}, sha("b"): {}}


def test_a_quiet_commit_is_found_by_its_time_and_the_message_in_the_command() -> None:
    history, agent = History(), Session()
    agent.ran(3, 'rtk git commit -q -m "Add the cart \\"for real\\""')
    history.commit(
        "a", 3.01, change("src/cart.py", body("cart")), subject='Add the cart "for real"'
    )
    history.commit("b", 3.02, change("src/till.py", body("till")), subject="Somebody else's work")
    assert history.told({1: agent}) == {sha("a"): {1: "output"}, sha("b"): {}}


def test_a_commit_without_words_is_found_if_it_is_the_only_one_at_that_moment() -> None:
    history, agent = History(), Session()
    agent.ran(3, "git commit -q -F /tmp/message")
    history.commit("a", 3.01, change("src/cart.py", body("cart")))
    (link,), _ = history.link({1: agent})
    assert (link.evidence, link.confidence) == ("output", "medium")


@pytest.mark.parametrize(
    "how", ["two commits", "two sessions", "failed", "another message", "another time"]
)
def test_a_commit_without_words_is_not_guessed(how: str) -> None:
    history, agent, other = History(), Session(), Session()
    command = (
        "git commit -q -m 'Something else'"
        if how == "another message"
        else "git commit -q -F /tmp/message"
    )
    agent.ran(1 if how == "another time" else 3, command, failed=how == "failed")
    if how == "two sessions":
        other.ran(3, "git commit -q -F /tmp/message")
    if how == "two commits":
        history.commit("z", 3.01, change("src/till.py", body("till")))
    history.commit("a", 3.01, change("src/cart.py", body("cart")))
    assert set(map(len, history.told({1: agent, 2: other}).values())) == {0}


def test_nothing_is_linked_by_time_alone() -> None:
    history, agent = History(), Session()
    for minute in range(10):
        agent.ran(minute, "git status && git log", seconds=59)
        history.commit(f"c{minute}", minute + 0.5, change("src/cart.py", body(f"c{minute}")))
    assert set(map(len, history.told({1: agent}).values())) == {0}


def test_who_replays_a_commit_did_not_make_it() -> None:
    history, maker, rebaser = History(), Session(), Session()
    maker.ran(3, "git commit -m 'Add cart'", ("0123abc", "Add cart"))
    rebaser.ran(60, "git rebase --continue", (sha("b")[:7], "Add cart"), rewrites=True)
    rebaser.ran(61, "git rebase --continue", (sha("c")[:7], "By a person"), rewrites=True)
    history.commit(
        "b", 60.01, change("src/cart.py", body("cart")), subject="Add cart", authored=3.01
    )
    history.commit(
        "c", 61.01, change("src/till.py", body("till")), subject="By a person", authored=5
    )
    links, _ = history.link({1: maker, 2: rebaser})
    assert [(link.commit, link.session, link.role) for link in links] == [(sha("b"), 1, "made")]


def test_a_squash_that_lists_subjects_is_linked_to_those_who_committed_them() -> None:
    history, one, two = History(), Session(), Session()
    one.ran(3, "git commit -m 'Add the cart'", ("0123abc", "Add the cart"))
    two.ran(9, "git commit -m 'Add the till'", ("4567def", "Add the till"))
    text = "* Add the cart\n\nLonger words.\n\n* Add the till\n"
    history.commit(
        "s", 99, change("src/cart.py", body("both")), subject="Cart and till (#7)", text=text
    )
    assert history.told({1: one, 2: two}) == {sha("s"): {1: "output", 2: "output"}}


def test_a_squash_of_one_commit_keeps_its_subject() -> None:
    history, agent = History(), Session()
    agent.ran(3, "git commit -m 'Add the whole cart'", ("0123abc", "Add the whole cart"))
    history.commit("s", 99, change("src/cart.py", body("x")), subject="Add the whole cart (#12)")
    history.commit(
        "t", 99 + 8 * 24 * 60, change("src/cart.py", body("y")), subject="Add the whole cart (#13)"
    )
    assert history.told({1: agent}) == {sha("s"): {1: "output"}, sha("t"): {}}


def test_a_squash_holds_the_lines_of_all_its_commits() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("one"))
    agent.wrote(5, "src/cart.py", body("two"))
    history.commit("base", 0, change("README.md", body("readme")))
    history.commit("a", 2, change("src/cart.py", body("one")))
    history.commit("b", 6, change("src/cart.py", body("two")))
    history.commit("s", 60, change("src/cart.py", [*body("one"), *body("two")]), parents=["base"])
    told = history.told({1: agent})
    assert told[sha("s")] == told[sha("a")] == told[sha("b")] == {1: "content"}


# -- copies --------------------------------------------------------------------------------------


def test_a_cherry_pick_takes_over_the_links() -> None:
    history, agent = History(), Session()
    agent.ran(3, "git commit -m 'Add cart'", (sha("a")[:7], "Add cart"))
    history.commit("base", 0, change("README.md", body("readme")))
    history.commit("a", 3.01, change("src/cart.py", body("cart")), subject="Add cart")
    history.commit(
        "p",
        40 * 24 * 60,
        change("src/cart.py", body("cart")),
        parents=["base"],
        subject="Pick cart",
    )
    links, _ = history.link({1: agent})
    assert {link.commit: link.evidence for link in links} == {
        sha("a"): "output",
        sha("p"): "output",
    }
    assert sha("a")[:10] in links[-1].why


def test_a_copy_is_known_even_if_the_original_comes_later_in_the_list() -> None:
    history, agent = History(), Session()
    agent.ran(3, "git commit -m 'Add cart'", (sha("a")[:7], "Add cart"))
    history.commit("p", 90, change("src/cart.py", body("cart")), subject="Add cart", authored=3.01)
    history.commit("a", 3.01, change("src/cart.py", body("cart")), parents=[], subject="Add cart")
    told = history.told({1: agent}, unreachable={sha("a")})
    assert told == {sha("p"): {1: "output"}, sha("a"): {1: "output"}}
    assert history.link({1: agent}, unreachable={sha("a")})[1] == {sha("a"): sha("p")}


def test_a_change_reverted_and_made_once_more_is_no_copy() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    agent.ran(3, "git commit -m 'Add cart'", (sha("a")[:7], "Add cart"))
    history.commit("a", 3.01, change("src/cart.py", body("cart")), subject="Add cart")
    history.commit("r", 60, change("src/cart.py", [], body("cart")), subject='Revert "Add cart"')
    history.commit("b", 90, change("src/cart.py", body("cart")), subject="Add cart")
    assert history.told({1: agent}) == {sha("a"): {1: "output"}, sha("r"): {}, sha("b"): {}}


def test_links_of_a_commit_that_is_gone_live_on_in_its_copy() -> None:
    history, agent = History(), Session()
    first = History()
    agent.ran(3, "git commit -m 'Add cart'", (sha("a")[:7], "Add cart"))
    first.commit("a", 3.01, change("src/cart.py", body("cart")), subject="Add cart")
    links, _ = first.link({1: agent})
    seed = PriorLink(
        sha("a"), "Add cart", first.commits[0].authored_at, first.commits[0].patch_id, links
    )
    history.commit(
        "b", 40 * 24 * 60, change("src/cart.py", body("cart")), subject="Another subject"
    )
    found, superseded = history.link({}, seeds=[seed], unreachable={sha("a")})
    assert [(link.commit, link.session, link.evidence) for link in found] == [
        (sha("b"), 1, "output")
    ]
    assert superseded == {sha("a"): sha("b")}


# -- hooks and rewrites --------------------------------------------------------------------------


def test_a_hook_is_the_strongest_evidence() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    history.commit("a", 3, change("src/cart.py", body("cart")))
    (link,), _ = history.link({1: agent}, hooks={sha("a"): [(1, 42, False)]})
    assert (link.evidence, link.role, link.seq, link.lines) == ("hook", "made", 42, 6)


def test_a_pick_that_an_agent_replayed_stays_with_who_made_it() -> None:
    history, maker, rebaser = History(), Session(), Session()
    maker.wrote(1, "src/cart.py", body("cart"))
    history.commit("a", 60, change("src/cart.py", body("cart")), authored=3)
    links, _ = history.link({1: maker, 2: rebaser}, hooks={sha("a"): [(2, 9, True)]})
    assert [(link.session, link.evidence, link.role) for link in links] == [(1, "content", "wrote")]


def test_an_amended_commit_takes_over_and_the_old_one_is_superseded() -> None:
    history, agent = History(), Session()
    history.commit("base", 0, change("README.md", body("readme")))
    history.commit("a", 3, change("src/cart.py", body("cart")))
    changed = [*body("cart", 4), *body("hand", 2)]
    history.commit(
        "b",
        50 * 24 * 60,
        change("src/cart.py", changed),
        authored=3,
        parents=["base"],
        subject="Reworded",
    )
    hooks = {sha("a"): [(1, 7, False)]}
    links, superseded = history.link({1: agent}, hooks=hooks, pairs=[(sha("a"), sha("b"))])
    assert {link.commit: (link.session, link.evidence, link.seq) for link in links} == {
        sha("a"): (1, "hook", 7),
        sha("b"): (1, "hook", 7),
    }
    assert superseded == {sha("a"): sha("b")}


def test_a_mapping_that_content_contradicts_is_ignored() -> None:
    history, agent = History(), Session()
    history.commit("theirs", 1, change("docs/guide.md", body("guide")), author="Bob")
    history.commit("a", 3, change("src/cart.py", body("cart")), parents=[])
    links, superseded = history.link(
        {1: agent}, hooks={sha("a"): [(1, 7, False)]}, pairs=[(sha("a"), sha("theirs"))]
    )
    assert {link.commit for link in links} == {sha("a")}
    assert superseded == {}


def test_commits_squashed_in_a_rebase_all_live_on_in_the_new_one() -> None:
    history, one, two = History(), Session(), Session()
    history.commit("a", 3, change("src/cart.py", body("one")))
    history.commit("b", 4, change("src/till.py", body("two")))
    history.commit(
        "s",
        90,
        change("src/cart.py", body("one")),
        change("src/till.py", body("two")),
        parents=[],
        authored=3,
    )
    links, superseded = history.link(
        {1: one, 2: two},
        hooks={sha("a"): [(1, 5, False)], sha("b"): [(2, 6, False)]},
        pairs=[(sha("a"), sha("s")), (sha("b"), sha("s"))],
    )
    assert {link.session for link in links if link.commit == sha("s")} == {1, 2}
    assert superseded == {sha("a"): sha("s"), sha("b"): sha("s")}


# -- who is never linked -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "author", ["dependabot[bot]", "renovate-bot", "github-actions", "acme-release-bot"]
)
def test_bots_are_never_linked_by_inference(author: str) -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    agent.ran(3, "git commit -m 'Add cart'", (sha("a")[:7], "Add cart"))
    history.commit(
        "a", 3.01, change("src/cart.py", body("cart")), subject="Add cart", author=author
    )
    assert history.told({1: agent}) == {sha("a"): {}}


def test_what_a_bot_committed_is_used_up() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    history.commit("a", 2, change("src/cart.py", body("cart")), author="merge-bot")
    history.commit("b", 3, change("src/cart.py", body("cart"), body("cart")))
    assert history.told({1: agent}) == {sha("a"): {}, sha("b"): {}}


def test_a_merge_is_linked_only_to_who_made_it() -> None:
    history, agent = History(), Session()
    history.commit("base", 0, change("README.md", body("readme")))
    history.commit("side", 1, change("src/cart.py", body("cart")), parents=["base"])
    agent.ran(3, "git commit --no-edit", (sha("m")[:7], "Merge side"))
    history.commit("m", 3.01, parents=["base", "side"], subject="Merge side")
    history.commit("n", 4, parents=["m", "side"], subject="Merge again")
    told = history.told({1: agent})
    assert (told[sha("m")], told[sha("n")]) == ({1: "output"}, {})


def test_a_call_that_a_fork_copied_belongs_to_the_session_that_ended_first() -> None:
    history, first, fork = History(), Session(), Session()
    act = first.wrote(1, "src/cart.py", body("cart"))
    fork.acts.written.append(act)
    fork.wrote(9, "src/till.py", body("till"))
    history.commit("a", 3, change("src/cart.py", body("cart")))
    history.commit("b", 10, change("src/till.py", body("till")))
    assert history.told({5: first, 2: fork}) == {sha("a"): {5: "content"}, sha("b"): {2: "content"}}


# -- only some of the history --------------------------------------------------------------------


def test_judging_one_commit_with_what_may_have_used_up_its_lines_gives_the_same_links() -> None:
    from whyfor.story.links.infer import Linker

    history, agent = History(), Session()
    for n in range(20):
        agent.wrote(n * 10, f"src/f{n % 3}.py", body(f"f{n}"))
        history.commit(f"c{n}", n * 10 + 5, change(f"src/f{n % 3}.py", body(f"f{n}")))
    # moved about by hand
    history.commit("last", 220, change("src/f0.py", [*body("f18"), *body("f15")]))
    whole = history.told({1: agent})
    linker = Linker({1: agent.acts})
    left_out = 0
    for commit in history.commits:
        spans = linker.spans([commit])
        known = []
        for one in history.commits:
            held = spans.held(one.committed_at, [file.path for file in one.files])
            if one is commit or held:
                known.append(one)
            else:
                left_out += 1
                known.append(msgspec.structs.replace(one, files=(), patch_id=None))
        links, _ = linker.link(known, todo={commit.sha})
        assert {
            link.session: link.evidence for link in links if link.evidence != "nearby"
        } == whole[commit.sha]
    assert whole[sha("last")] == {}
    assert left_out > len(history.commits) ** 2 / 2, "other files"


def test_nothing_can_have_used_up_what_nobody_wrote() -> None:
    from whyfor.story.links.infer import Linker

    history = History()
    history.commit("a", 1, change("src/cart.py", body("cart")))
    spans = Linker({}).spans(history.commits)
    assert not spans.cover(START)
    assert not spans.held(START, ["src/cart.py"])


def test_a_commit_of_a_file_that_was_moved_since_may_have_used_up_its_lines() -> None:
    from whyfor.story.links.infer import Linker

    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("cart"))
    agent.wrote(3, "src/till.py", kind="moved", old="src/cart.py")
    history.commit("a", 9, change("src/till.py", body("cart")))
    spans = Linker({1: agent.acts}).spans(history.commits)
    assert spans.held(START + 2 * MINUTE, ["src/cart.py"])
    assert not spans.held(START, ["src/cart.py"]), "before it was written"


def test_only_what_is_asked_for_is_linked() -> None:
    history, agent = History(), Session()
    agent.wrote(1, "src/cart.py", body("one"))
    agent.wrote(3, "src/cart.py", body("two"))
    history.commit("a", 2, change("src/cart.py", body("one")))
    history.commit("b", 4, change("src/cart.py", body("two")))
    links, _ = history.link({1: agent}, todo={sha("b")})
    assert [link.commit for link in links] == [sha("b")]


def test_ancestry_is_what_git_says_on_a_tangled_history() -> None:
    from random import Random

    from whyfor.story.links.ancestry import Ancestry

    rng = Random(7)
    parents: dict[str, list[str]] = {}
    for n in range(120):
        known = list(parents)
        parents[f"c{n}"] = (
            sorted({rng.choice(known[-12:]) for _ in range(rng.choice((1, 1, 1, 2)))})
            if known
            else []
        )
    above: dict[str, set[str]] = {}
    for name, direct in parents.items():
        above[name] = set(direct).union(*(above[parent] for parent in direct)) if direct else set()
    shuffled = list(parents)
    rng.shuffle(shuffled)
    ancestry = Ancestry({name: parents[name] for name in shuffled})
    asked = [(rng.choice(shuffled), rng.choice(shuffled)) for _ in range(5000)]
    assert all(ancestry.descends(child, other) == (other in above[child]) for child, other in asked)


def test_most_of_one_file_in_a_large_commit_is_a_link_while_it_is_fresh() -> None:
    for minute, linked in ((10, True), (3 * 24 * 60, False)):
        history, agent = History(), Session()
        agent.wrote(0, "src/till.py", body("till", 2))
        history.commit(
            "a",
            minute,
            change("src/cart.py", body("human", 60)),
            change("src/till.py", body("till", 2)),
        )
        assert bool(history.told({1: agent})[sha("a")]) is linked


def test_lines_that_stand_in_many_files_are_nobodys() -> None:
    history, agent = History(), Session()
    for n in range(20):
        agent.wrote(n, f"src/f{n}.go", ["if err != nil {", "return err to caller", *body(f"f{n}")])
        files = change(f"src/f{n}.go", ["if err != nil {", "return err to caller", *body(f"f{n}")])
        history.commit(f"c{n}", n + 0.5, files)
    agent.wrote(30, "src/f1.go", ["if err != nil {", "return err to caller"])
    history.commit(
        "human",
        31,
        change("src/f1.go", ["if err != nil {", "return err to caller", *body("human")]),
    )
    told = history.told({1: agent})
    assert told.pop(sha("human")) == {}
    assert set(map(len, told.values())) == {1}


def test_lines_that_tell_nothing_are_a_link_only_if_they_are_most_of_a_small_commit() -> None:
    for lines, linked in ((["}", "});"], True), (["}", "x = 1", "y = 2", "z = 3"], False)):
        history, agent = History(), Session()
        agent.wrote(1, "src/cart.ts", ["}", "});"])
        history.commit("a", 3, change("src/cart.ts", lines))
        assert bool(history.told({1: agent})[sha("a")]) is linked


def test_a_copy_is_not_credited_to_who_rewrote_the_lines_after_it_was_made() -> None:
    history, maker, later = History(), Session(), Session()
    maker.ran(3, "git commit -m 'Add cart'", (sha("a")[:7], "Add cart"))
    history.commit("base", 0, change("README.md", body("readme")))
    history.commit("p", 90, change("src/cart.py", body("cart")), subject="Add cart", authored=3.01)
    history.commit(
        "a", 3.01, change("src/cart.py", body("cart")), parents=["base"], subject="Add cart"
    )
    later.wrote(60, "src/cart.py", body("cart"), kind="whole")
    assert history.told({1: maker, 2: later}) == {
        sha("base"): {},
        sha("a"): {1: "output"},
        sha("p"): {1: "output"},
    }
