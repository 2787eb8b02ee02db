"""Who made which commit, in real repositories: inferred from transcripts and history, and with
hooks installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.story.links.workshop import (
    Agent,
    Cli,
    Now,
    Repo,
    Workshop,
    body,
    linked,
    part_of,
    spooled,
)

# -- an agent commits -----------------------------------------------------------------------------


def test_a_commit_in_the_middle_of_a_turn_has_the_closing_words_later(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    made = agent.commit("Add a cart")
    shop.ingest(agent)
    early = shop.show(made)
    assert linked(early) == {agent.session_id: "hook" if shop.hooked else "output"}
    assert early["checkpoint"]["confidence"] == "high"
    assert [said["role"] for said in early["related"]] == ["request"]
    agent.say("The cart is there, and I committed it.")
    shop.ingest(agent)
    later = shop.show(made)
    assert [(said["role"], said["text"]) for said in later["related"]] == [
        ("request", "Add a cart"),
        ("closing words", "The cart is there, and I committed it."),
    ]
    assert part_of(later, agent)["to"] > part_of(early, agent)["to"]
    assert later["checkpoint"]["id"] == early["checkpoint"]["id"]


def test_commits_of_one_turn_adjoin_and_share_nothing(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart, a till and a door")
    made = []
    for name in ("cart", "till", "door"):
        agent.say(f"Now the {name}.")
        agent.write(f"{name}.py", body(name))
        made.append(agent.commit(f"Add a {name}"))
    agent.say("All three are there.")
    shop.ingest(agent)
    told = shop.log()
    parts = [part_of(told[sha], agent) for sha in made]
    assert parts[0]["from"] == 1
    assert [part["from"] for part in parts[1:]] == [part["to"] + 1 for part in parts[:-1]]
    roots = {told[sha]["checkpoint"]["group_root"] for sha in made}
    assert roots == {told[made[0]]["checkpoint"]["id"]}
    assert [part["prompts"] for part in parts] == [1, 0, 0]
    assert [part["continued_from_parent"] for part in parts] == [False, True, True]
    lines = [(line["seq"], line["text"]) for sha in made for line in shop.show(sha)["conversation"]]
    assert len(lines) == len(set(lines))
    assert lines[-1][1] == "All three are there."
    assert sum(part["new_messages"] for part in parts) == parts[-1]["messages"] == 5


def test_a_new_request_starts_a_group_and_an_answered_question_does_not(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    first = agent.commit("Add a cart")
    agent.ask("Which till?", "The small one")
    agent.write("till.py", body("till"))
    second = agent.commit("Add a till")
    agent.prompt("Now a door")
    agent.write("door.py", body("door"))
    third = agent.commit("Add a door")
    shop.ingest(agent)
    told = shop.log()
    roots = [told[sha]["checkpoint"]["group_root"] for sha in (first, second, third)]
    assert roots == [told[sha]["checkpoint"]["id"] for sha in (first, first, third)]
    assert [(said["role"], said["text"]) for said in shop.show(second)["related"]] == [
        ("request", "Add a cart"),
        ("question", "Which till?"),
        ("answer", "The small one"),
    ]


def test_a_commit_with_a_quiet_command_is_linked(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    agent.run("git add -A && git commit -q -m 'Add a cart'")
    shop.ingest(agent)
    assert shop.links()[shop.repo.head] == {agent.session_id: "hook" if shop.hooked else "output"}


def test_commits_that_follow_each_other_at_once_keep_their_order(
    repo: Repo, home: Path, cli: Cli
) -> None:
    """By the real clock, several in one second and in one command, as agents do it."""
    repo.clock = Now()
    shop = Workshop(home, repo, cli, hooked=True)
    agent = Agent("s1", repo)
    agent.prompt("Add a cart, a till, a door and a bell")
    made = []
    for name in ("cart", "till"):
        agent.write(f"{name}.py", body(name))
        made.append(agent.commit(f"Add a {name}"))
    agent.write("door.py", body("door"))
    agent.write("bell.py", body("bell"))
    agent.run(
        "git add door.py && git commit -m 'Add a door' && git add bell.py && git commit -m 'Add a "
        "bell'"
    )
    made += [repo.sha("HEAD~1"), repo.head]
    agent.say("All are there.")
    shop.ingest(agent)
    parts = [part_of(shop.log()[sha], agent) for sha in made]
    assert [part["evidence"] for part in parts] == ["hook"] * 4
    assert [parts[0]["from"], parts[1]["from"], parts[2]["from"]] == [
        1,
        parts[0]["to"] + 1,
        parts[1]["to"] + 1,
    ]
    assert parts[2]["to"] <= parts[3]["from"]
    assert shop.show(made[3])["related"][-1]["text"] == "All are there."
    assert {
        told["checkpoint"]["group_root"] for sha, told in shop.log().items() if sha in made
    } == {shop.log()[made[0]]["checkpoint"]["id"]}


def test_a_commit_with_a_date_of_its_own_belongs_where_it_was_made(
    repo: Repo, home: Path, cli: Cli
) -> None:
    repo.clock = Now()
    shop = Workshop(home, repo, cli, hooked=True)
    agent = Agent("s1", repo)
    agent.prompt("Add a cart, as if it were 2001")
    agent.write("cart.py", body("cart"))
    agent.run(
        "git add -A && GIT_COMMITTER_DATE='2001-01-01T00:00:00Z' git commit -m 'Add a cart' "
        "--date=2001-01-01"
    )
    old = repo.head
    agent.prompt("Add a till")
    agent.write("till.py", body("till"))
    new = agent.commit("Add a till")
    shop.ingest(agent)
    told = shop.log()
    assert [linked(told[sha]) for sha in (old, new)] == [{agent.session_id: "hook"}] * 2
    assert [part_of(told[sha], agent)["prompts"] for sha in (old, new)] == [1, 1]


# -- a person commits ----------------------------------------------------------------------------


def test_a_person_commits_an_agents_work(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    agent.say("Done, it is yours to commit.")
    made = shop.repo.commit("A cart")
    shop.ingest(agent)
    told = shop.show(made)
    assert linked(told) == {agent.session_id: "content"}
    assert (part_of(told, agent)["lines"], part_of(told, agent)["share"]) == (6, 1.0)
    assert part_of(told, agent)["role"] == "wrote"
    assert [said["text"] for said in told["related"]] == [
        "Add a cart",
        "Done, it is yours to commit.",
    ]


def test_a_persons_own_commit_while_an_agent_is_open_is_not_linked(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    shop.repo.write("notes.md", body("note"))
    shop.repo.git("add", "notes.md")
    shop.repo.git("commit", "-q", "-m", "Notes of mine")
    made = shop.repo.head
    agent.say("Still at it.")
    shop.ingest(agent)
    told = shop.log()[made]
    assert told["checkpoint"] is None
    assert told["reason"]
    assert told["nearby"] == []


def test_a_persons_lines_in_a_file_the_agent_wrote_are_a_hint_only(shop: Workshop) -> None:
    shop.repo.commit("Start", {"cart.py": body("base")})
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("base") + body("cart"))
    made = shop.repo.commit("My own cart", {"cart.py": body("base") + body("mine")})
    shop.ingest(agent)
    told = shop.log()[made]
    assert told["checkpoint"] is None
    assert [hint["session_id"] for hint in told["nearby"]] == [agent.session_id]


def test_a_path_the_agent_deleted_and_a_person_made_anew_is_not_linked(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart, then take it away")
    agent.write("cart.py", body("cart"))
    agent.run("rm cart.py")
    agent.say("It is gone.")
    made = shop.repo.commit("A cart of mine", {"cart.py": body("cart")})
    shop.ingest(agent)
    assert shop.links()[made] == {}


def test_a_persons_edits_after_all_work_was_committed_are_not_linked(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    first = agent.commit("Add a cart")
    out = shop.repo.commit("Without it", {"cart.py": "pass\n"})
    back = shop.repo.commit("With it again", {"cart.py": body("cart")})
    more = shop.repo.commit("And more", {"cart.py": body("cart") + body("more")})
    shop.ingest(agent)
    links = shop.links()
    assert links[first]
    assert [links[sha] for sha in (out, back, more)] == [{}, {}, {}]


def test_work_split_by_patch_is_linked_to_both_commits(shop: Workshop) -> None:
    """As `git add -p` does: part of a file is staged and committed, then the rest."""
    shop.repo.commit("Start", {"cart.py": body("top") + body("middle") + body("end")})
    agent = Agent("s1", shop.repo)
    agent.prompt("Begin and finish the cart")
    agent.edit("cart.py", body("top"), body("top") + body("begun"))
    agent.say("That was the beginning.")
    agent.prompt("Go on")
    agent.edit("cart.py", body("end"), body("end") + body("finished"))
    shop.repo.shell("printf 'y\\nn\\n' | git add -p && git commit -q -m 'The beginning'")
    first = shop.repo.head
    second = shop.repo.commit("The rest")
    shop.ingest(agent)
    told = shop.log()
    assert [linked(told[sha]) for sha in (first, second)] == [{agent.session_id: "content"}] * 2
    one, two = (part_of(told[sha], agent) for sha in (first, second))
    assert two["from"] == one["to"] + 1
    assert [one["prompts"], two["prompts"]] == [1, 1]


def test_one_edit_split_over_two_commits_is_linked_to_both(shop: Workshop) -> None:
    shop.repo.commit("Start", {"cart.py": body("top") + body("end")})
    agent = Agent("s1", shop.repo)
    agent.prompt("Redo the cart")
    agent.write("cart.py", body("begun") + body("top") + body("end") + body("finished"))
    shop.repo.shell("printf 'y\\nn\\n' | git add -p && git commit -q -m 'The beginning'")
    first = shop.repo.head
    second = shop.repo.commit("The rest")
    shop.ingest(agent)
    told = shop.log()
    assert [linked(told[sha]) for sha in (first, second)] == [{agent.session_id: "content"}] * 2
    assert part_of(told[first], agent)["prompts"] == 1


# -- several agents, several folders -------------------------------------------------------------


def test_of_two_agents_in_one_folder_each_has_its_own_commits(shop: Workshop) -> None:
    one, two = Agent("s1", shop.repo), Agent("s2", shop.repo)
    one.prompt("Add a cart")
    two.prompt("Add a till")
    one.write("cart.py", body("cart"))
    two.write("till.py", body("till"))
    one.run("git add cart.py && git commit -m 'Add a cart'")
    first = shop.repo.head
    two.run("git add till.py && git commit -m 'Add a till'")
    second = shop.repo.head
    shop.ingest(one, two)
    evidence = "hook" if shop.hooked else "output"
    links = shop.links()
    assert links[first] == {one.session_id: evidence}
    assert links[second] == {two.session_id: evidence}


def test_a_commit_of_two_agents_work_is_both_theirs(shop: Workshop) -> None:
    one, two = Agent("s1", shop.repo), Agent("s2", shop.repo)
    one.prompt("Add a cart")
    two.prompt("Add a till")
    one.write("cart.py", body("cart"))
    two.write("till.py", body("till"))
    made = shop.repo.commit("Cart and till")
    shop.ingest(one, two)
    assert shop.links()[made] == {one.session_id: "content", two.session_id: "content"}
    assert {line["session_id"] for line in shop.show(made)["conversation"]} == {
        one.session_id,
        two.session_id,
    }


def test_an_agent_that_commits_anothers_work_is_linked_beside_it(shop: Workshop) -> None:
    one, two = Agent("s1", shop.repo), Agent("s2", shop.repo)
    one.prompt("Add a cart")
    one.write("cart.py", body("cart"))
    two.prompt("Commit what is there")
    made = two.commit("Add a cart")
    shop.ingest(one, two)
    assert shop.links()[made] == {
        one.session_id: "content",
        two.session_id: "hook" if shop.hooked else "output",
    }


def test_an_agent_started_in_one_worktree_commits_in_another(
    shop: Workshop, tmp_path: Path
) -> None:
    shop.repo.git("worktree", "add", "-q", str(tmp_path / "code" / "beside"))
    beside = shop.repo.at(tmp_path / "code" / "beside")
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart over there")
    agent.write("cart.py", body("cart"), repo=beside)
    made = agent.commit("Add a cart", repo=beside)
    agent.write("till.py", body("till"), repo=beside)
    by_hand = beside.commit("A till")
    here = shop.repo.commit("Mine", {"other.py": body("other")})
    shop.ingest(agent)
    links = {**shop.links("beside"), **shop.links("main")}
    assert links[made] == {agent.session_id: "hook" if shop.hooked else "output"}
    assert links[by_hand] == {agent.session_id: "content"}
    assert links[here] == {}


# -- rewriting -----------------------------------------------------------------------------------


def two_commits(shop: Workshop, *, branch: str | None = None) -> tuple[Agent, str, str]:
    """An agent's cart and till, on a branch if one is named."""
    if branch:
        shop.repo.git("checkout", "-q", "-b", branch)
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    first = agent.commit("Add a cart")
    agent.prompt("Add a till")
    agent.write("till.py", body("till"))
    second = agent.commit("Add a till")
    agent.say("Both are there.")
    return agent, first, second


def assert_replaced(shop: Workshop, agent: Agent, *pairs: tuple[str, str]) -> None:
    """The story is found from the new commit and from the old one, which says what took its
    place."""
    for old, new in pairs:
        before, after = shop.show(old), shop.show(new)
        assert agent.session_id in linked(before), (
            f"{before['subject']}: not found from the old commit"
        )
        assert agent.session_id in linked(after), (
            f"{after['subject']}: not found from the new commit"
        )
        assert before["checkpoint"]["superseded_by"] == new
        assert after["checkpoint"]["superseded_by"] is None


def requests(shop: Workshop, commit: str) -> list[str]:
    return [said["text"] for said in shop.show(commit)["related"] if said["role"] == "request"]


def every_line_once(shop: Workshop, *commits: str) -> None:
    lines = [
        (line["session_id"], line["seq"])
        for sha in commits
        for line in shop.show(sha)["conversation"]
    ]
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
def test_amended(shop: Workshop, read_between: bool) -> None:
    agent, first, second = two_commits(shop)
    if read_between:
        shop.ingest(agent)
    shop.repo.write("till.py", body("till") + "drawer = open_drawer()\n")
    shop.repo.git("commit", "-q", "-a", "--amend", "-m", "Add a till with a drawer")
    shop.ingest(agent)
    assert_replaced(shop, agent, (second, shop.repo.head))
    assert shop.show(first)["checkpoint"]["superseded_by"] is None
    every_line_once(shop, first, shop.repo.head)


@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
def test_reworded(shop: Workshop, read_between: bool) -> None:
    agent, _, second = two_commits(shop)
    if read_between:
        shop.ingest(agent)
    shop.repo.git("commit", "-q", "--amend", "-m", "Something else entirely")
    shop.ingest(agent)
    assert_replaced(shop, agent, (second, shop.repo.head))


def test_amended_by_the_agent_itself(shop: Workshop) -> None:
    agent, _, second = two_commits(shop)
    agent.prompt("And a drawer, in the same commit")
    agent.write("till.py", body("till") + body("drawer"))
    agent.run("git commit -a --amend -m 'Add a till with a drawer'")
    agent.say("Amended.")
    shop.ingest(agent)
    assert_replaced(shop, agent, (second, shop.repo.head))
    said = [said["text"] for said in shop.show(shop.repo.head)["related"]]
    assert "And a drawer, in the same commit" in said
    assert "Amended." in said


def test_fixed_up(shop: Workshop) -> None:
    agent, first, second = two_commits(shop)
    shop.repo.write("cart.py", body("cart") + "wheels = 4\n")
    shop.repo.git("commit", "-q", "-a", f"--fixup={first}")
    shop.repo.git("rebase", "-q", "-i", "--autosquash", f"{first}^")
    shop.ingest(agent)
    assert_replaced(shop, agent, (first, shop.repo.sha("HEAD~1")), (second, shop.repo.head))
    every_line_once(shop, shop.repo.sha("HEAD~1"), shop.repo.head)


@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
def test_rebased(shop: Workshop, read_between: bool) -> None:
    agent, first, second = two_commits(shop, branch="topic")
    if read_between:
        shop.ingest(agent)
    shop.repo.git("checkout", "-q", "main")
    other = shop.repo.commit("Meanwhile", {"other.py": body("other")})
    shop.repo.git("rebase", "-q", "main", "topic")
    shop.ingest(agent)
    assert_replaced(
        shop, agent, (first, shop.repo.sha("topic~1")), (second, shop.repo.sha("topic"))
    )
    assert shop.links()[other] == {}
    every_line_once(shop, shop.repo.sha("topic~1"), shop.repo.sha("topic"))


def test_rebased_by_another_agent(shop: Workshop) -> None:
    agent, first, second = two_commits(shop, branch="topic")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.commit("Meanwhile", {"other.py": body("other")})
    helper = Agent("s2", shop.repo)
    helper.prompt("Rebase the topic")
    helper.run("git rebase main topic")
    helper.say("Rebased.")
    shop.ingest(agent, helper)
    assert_replaced(
        shop, agent, (first, shop.repo.sha("topic~1")), (second, shop.repo.sha("topic"))
    )
    links = shop.links()
    assert helper.session_id not in {
        **links[shop.repo.sha("topic~1")],
        **links[shop.repo.sha("topic")],
    }


def test_rebased_by_the_agent_that_made_them(shop: Workshop) -> None:
    agent, first, second = two_commits(shop, branch="topic")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.commit("Meanwhile", {"other.py": body("other")})
    agent.prompt("Rebase the topic")
    agent.run("git rebase main topic")
    agent.say("Rebased.")
    shop.ingest(agent)
    one, two = shop.repo.sha("topic~1"), shop.repo.sha("topic")
    assert_replaced(shop, agent, (first, one), (second, two))
    every_line_once(shop, one, two)
    assert [requests(shop, sha) for sha in (one, two)] == [["Add a cart"], ["Add a till"]]


def test_a_commit_skipped_in_a_rebase_does_not_become_somebody_elses(shop: Workshop) -> None:
    shop.repo.git("checkout", "-q", "-b", "topic")
    agent = Agent("s1", shop.repo)
    agent.prompt("Name the shop")
    agent.write("README.md", body("agents"))
    mine = agent.commit("Name the shop")
    shop.repo.git("checkout", "-q", "main")
    theirs = shop.repo.commit("Another name", {"README.md": body("persons")})
    shop.repo.git("rebase", "-q", "main", "topic", check=False)
    shop.repo.git("rebase", "--skip")
    assert shop.repo.sha("topic") == theirs
    shop.ingest(agent)
    told = shop.show(theirs)
    assert told["checkpoint"] is None
    assert linked(shop.show(mine))
    assert shop.show(mine)["checkpoint"]["superseded_by"] is None


def test_squashed_in_a_rebase(shop: Workshop) -> None:
    agent, first, second = two_commits(shop)
    shop.repo.git(
        "rebase", "-q", "-i", f"{first}^", env={"GIT_SEQUENCE_EDITOR": "sed -i '2s/^pick/squash/'"}
    )
    shop.ingest(agent)
    assert_replaced(shop, agent, (first, shop.repo.head), (second, shop.repo.head))
    assert requests(shop, shop.repo.head) == ["Add a cart", "Add a till"]


def test_merged_as_a_squash(shop: Workshop) -> None:
    agent, _, second = two_commits(shop, branch="topic")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.git("merge", "-q", "--squash", "topic")
    shop.repo.git("commit", "-q", "-m", "Cart and till")
    shop.ingest(agent)
    assert agent.session_id in linked(shop.show(shop.repo.head))
    assert linked(shop.show(second))
    assert shop.show(second)["checkpoint"]["superseded_by"] is None  # its branch still has it
    shop.repo.git("branch", "-q", "-D", "topic")
    assert_replaced(shop, agent, (second, shop.repo.head))
    agent.say("Glad that it is merged.")
    shop.ingest(agent)
    assert_replaced(shop, agent, (second, shop.repo.head))
    assert requests(shop, shop.repo.head) == ["Add a cart", "Add a till"]


@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
def test_squashed_by_a_forge(shop: Workshop, read_between: bool) -> None:
    """Its body lists the subjects; author and dates are new, and the branch is gone."""
    agent, first, second = two_commits(shop, branch="topic")
    if read_between:
        shop.ingest(agent)
    shop.repo.git("checkout", "-q", "main")
    shop.repo.git("merge", "-q", "--squash", "topic")
    shop.repo.clock.tick(3600)
    shop.repo.git(
        "commit", "-q", "-m", "Cart and till (#7)\n\n* Add a cart, for the shop\n\n* Add a till\n"
    )
    shop.repo.git("branch", "-q", "-D", "topic")
    shop.ingest(agent)
    assert_replaced(shop, agent, (first, shop.repo.head), (second, shop.repo.head))
    assert requests(shop, shop.repo.head) == ["Add a cart", "Add a till"]
    assert linked(shop.show(second)) == {agent.session_id: "hook" if shop.hooked else "output"}


def test_cherry_picked(shop: Workshop) -> None:
    agent, first, _ = two_commits(shop, branch="topic")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.commit("Meanwhile", {"other.py": body("other")})
    shop.repo.clock.tick(3600)
    shop.repo.git("cherry-pick", first)
    shop.ingest(agent)
    assert agent.session_id in linked(shop.show(shop.repo.head))
    assert requests(shop, shop.repo.head) == requests(shop, first) == ["Add a cart"]
    assert shop.show(first)["checkpoint"]["superseded_by"] is None


def test_a_persons_commit_of_an_agents_work_cherry_picked(shop: Workshop) -> None:
    shop.repo.git("checkout", "-q", "-b", "topic")
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    original = shop.repo.commit("A cart")
    agent.say("Good that you committed it.")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.commit("Meanwhile", {"other.py": body("other")})
    shop.repo.clock.tick(3600)
    shop.repo.git("cherry-pick", original)
    shop.ingest(agent)
    stories = [shop.show(sha) for sha in (original, shop.repo.head)]
    assert [linked(story) for story in stories] == [{agent.session_id: "content"}] * 2
    assert [[said["text"] for said in story["related"]] for story in stories] == [
        ["Add a cart", "Good that you committed it."]
    ] * 2


def test_reverted_by_a_person(shop: Workshop) -> None:
    agent, _, second = two_commits(shop)
    shop.repo.git("revert", "--no-edit", second)
    shop.ingest(agent)
    told = shop.show(shop.repo.head)
    assert told["checkpoint"] is None
    assert told["reverts"] == second
    assert linked(shop.show(second))


def test_stashed_and_brought_back(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    shop.repo.git("add", "-A")
    shop.repo.git("stash", "-q")
    other = shop.repo.commit("Something urgent", {"other.py": body("other")})
    shop.repo.git("stash", "pop", "-q")
    made = shop.repo.commit("A cart")
    shop.ingest(agent)
    assert shop.links()[made] == {agent.session_id: "content"}
    assert shop.links()[other] == {}


@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
def test_reset_and_committed_again(shop: Workshop, read_between: bool) -> None:
    agent, first, second = two_commits(shop)
    if read_between:
        shop.ingest(agent)
    shop.repo.clock.tick(600)
    shop.repo.git("reset", "-q", "--soft", f"{first}^")
    shop.repo.git("commit", "-q", "-m", "All of it at once")
    shop.ingest(agent)
    assert_replaced(shop, agent, (first, shop.repo.head), (second, shop.repo.head))
    assert requests(shop, shop.repo.head) == ["Add a cart", "Add a till"]


def test_pulled_with_a_rebase(shop: Workshop, tmp_path: Path) -> None:
    shop.repo.git("clone", "-q", "--bare", str(shop.repo.path), str(tmp_path / "hub.git"))
    shop.repo.git("remote", "add", "origin", str(tmp_path / "hub.git"))
    shop.repo.git("fetch", "-q")
    shop.repo.git("branch", "-q", "-u", "origin/main")
    shop.repo.git("clone", "-q", str(tmp_path / "hub.git"), str(tmp_path / "code" / "theirs"))
    agent, first, second = two_commits(shop)
    theirs = Repo(tmp_path / "code" / "theirs", shop.repo.clock, author="Bob")
    theirs.commit("Meanwhile", {"other.py": body("other")})
    theirs.git("push", "-q")
    shop.repo.git("pull", "-q", "--rebase")
    shop.ingest(agent)
    assert_replaced(shop, agent, (first, shop.repo.sha("HEAD~1")), (second, shop.repo.head))
    assert shop.links()[shop.repo.sha("HEAD~2")] == {}


def test_all_of_history_rewritten(shop: Workshop) -> None:
    agent, first, second = two_commits(shop)
    shop.ingest(agent)
    shop.repo.git(
        *(
            "filter-branch",
            "-f",
            "--env-filter",
            "export GIT_AUTHOR_EMAIL=ada@new.org GIT_COMMITTER_EMAIL=ada@new.org",
        ),
        *("--", "--all"),
        env={"FILTER_BRANCH_SQUELCH_WARNING": "1"},
    )
    shop.repo.git("update-ref", "-d", "refs/original/refs/heads/main")
    assert shop.repo.sha("HEAD~1") != first
    shop.ingest(agent)
    assert_replaced(shop, agent, (first, shop.repo.sha("HEAD~1")), (second, shop.repo.head))


def test_rewritten_and_the_old_commits_thrown_away(shop: Workshop) -> None:
    """Hashes in a transcript often no longer exist."""
    agent, first, _ = two_commits(shop)
    shop.repo.git("commit", "-q", "--amend", "-m", "Add a till with a drawer")
    shop.repo.git(
        "rebase",
        "-q",
        "--exec",
        "git commit -q --amend --no-edit --date='2035-05-01T09:00:00Z'",
        "--root",
    )
    shop.repo.shell("git reflog expire --expire=now --all && git gc -q --prune=now")
    assert shop.repo.git("cat-file", "-t", first, check=False) != "commit"
    shop.ingest(agent)
    links = shop.links()
    assert agent.session_id in links[shop.repo.sha("HEAD~1")]
    assert agent.session_id in links[shop.repo.head]
    assert links[shop.repo.sha("HEAD~2")] == {}


def test_a_printed_hash_alone_is_no_proof(plain: Workshop) -> None:
    """Of a commit that is somebody else's: shown by a log, not made."""
    theirs = plain.repo.commit("Theirs", {"other.py": body("other")})
    agent = Agent("s1", plain.repo)
    plain.repo.clock.tick(3600)
    agent.prompt("What was done?")
    agent.run("git log --oneline")
    agent.run(f"echo '[main {theirs[:7]}] Theirs'")
    plain.ingest(agent)
    assert plain.links()[theirs] == {}


def test_a_commit_of_its_own_in_the_middle_of_a_rebase(shop: Workshop) -> None:
    """The rebase is still under way when `post-commit` fires; this one is no pick."""
    shop.repo.git("checkout", "-q", "-b", "topic")
    shop.repo.commit("Person's work", {"mine.py": body("mine")})
    agent = Agent("s1", shop.repo)
    agent.prompt("Put a commit before mine")
    agent.run("GIT_SEQUENCE_EDITOR=\"sed -i '1s/^/break\\n/'\" git rebase -i main")
    agent.write("cart.py", body("cart"))
    made = agent.commit("Add a cart")
    agent.run("git rebase --continue")
    shop.ingest(agent)
    links = shop.links()
    assert agent.session_id in links[made]
    assert links[shop.repo.head] == {}
    assert shop.repo.sha("HEAD~1") == made


def test_picks_of_a_rebase_make_no_checkpoints_of_their_own(
    hooked: Workshop, tmp_path: Path
) -> None:
    """`post-commit` fires for each of them, inside the agent that rebases."""
    hooked.repo.git("checkout", "-q", "-b", "topic")
    for name in ("one", "two"):
        hooked.repo.commit(f"Person's {name}", {f"{name}.py": body(name)})
    hooked.repo.git("checkout", "-q", "main")
    hooked.repo.commit("Meanwhile", {"other.py": body("other")})
    agent = Agent("s1", hooked.repo)
    agent.prompt("Rebase the topic")
    agent.run("git rebase main topic")
    agent.say("Rebased.")
    picks = [
        e for e in spooled(tmp_path / "whyfor") if e["event"] == "post-commit" and e.get("rebasing")
    ]
    assert len(picks) == 2
    hooked.ingest(agent)
    links = hooked.links()
    assert [links[hooked.repo.sha(name)] for name in ("topic", "topic~1", "main")] == [{}, {}, {}]


# -- which repository ----------------------------------------------------------------------------


def test_repositories_of_the_same_name_share_nothing(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repo.made(tmp_path / "work" / "shop", shop.repo.clock, first=False)
    first = other.commit("Another beginning", {"README.md": "Another shop.\n"})
    agent, _, second = two_commits(shop)
    copied = other.commit("The same by chance", {"cart.py": body("cart")})
    shop.ingest(agent)
    assert shop.links()[second]
    monkeypatch.chdir(other.path)
    assert shop.links() == {copied: {}, first: {}}


@pytest.mark.parametrize(
    "url", ["https://forge.example/acme/shop.git", "git@forge.example:acme/shop"]
)
def test_clones_of_one_remote_share(
    shop: Workshop, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.repo.git("clone", "-q", str(shop.repo.path), str(tmp_path / "work" / "elsewhere"))
    clone = shop.repo.at(tmp_path / "work" / "elsewhere")
    shop.repo.git("remote", "add", "origin", "https://forge.example/Acme/shop")
    clone.git("remote", "set-url", "origin", url)
    agent, first, second = two_commits(shop)
    shop.ingest(agent)
    clone.git("pull", "-q", str(shop.repo.path), "main")
    monkeypatch.chdir(clone.path)
    links = shop.links()
    assert agent.session_id in links[first]
    assert agent.session_id in links[second]


def test_work_written_in_one_clone_and_committed_in_another(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.repo.git("clone", "-q", str(shop.repo.path), str(tmp_path / "work" / "elsewhere"))
    clone = shop.repo.at(tmp_path / "work" / "elsewhere")
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    made = clone.commit("Carried over", {"cart.py": body("cart")})
    shop.ingest(agent)
    monkeypatch.chdir(clone.path)
    assert shop.links()[made] == {agent.session_id: "content"}


def test_one_session_in_two_repositories(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = Repo.made(tmp_path / "code" / "tools", shop.repo.clock, first=False)
    tools.commit("Tools", {"README.md": "Tools.\n"})
    if shop.hooked:
        shop.install(tools)
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart here and a saw there")
    agent.write("cart.py", body("cart"))
    here = agent.commit("Add a cart")
    agent.write("saw.py", body("saw"), repo=tools)
    there = agent.commit("Add a saw", repo=tools)
    agent.write("file.py", body("file"), repo=tools)
    by_hand = tools.commit("Add a file")
    agent.say("Done in both.")
    shop.ingest(agent)
    evidence = "hook" if shop.hooked else "output"
    assert shop.links()[here] == {agent.session_id: evidence}
    monkeypatch.chdir(tools.path)
    links = shop.links()
    assert links[there] == {agent.session_id: evidence}
    assert links[by_hand] == {agent.session_id: "content"}


def test_a_merge_is_told_as_one_and_has_no_conversation(shop: Workshop) -> None:
    agent, _, second = two_commits(shop, branch="topic")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.commit("Meanwhile", {"other.py": body("other")})
    agent.run("git merge --no-edit topic")
    shop.ingest(agent)
    told = shop.show(shop.repo.head)
    assert told["checkpoint"]["is_merge"]
    assert told["checkpoint"]["sessions"] == []
    assert told["reason"] == "context_reset"
    assert told["conversation"] == []
    assert shop.links()[second]
