"""Of commits that no session can have a part in, nothing but their names is read."""

from __future__ import annotations

import subprocess

from tests.story.links.workshop import Agent, Repo, Workshop, body
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.times import DAY
from whyfor.store.open import reading_local
from whyfor.story.links.assemble import LinkOutcome
from whyfor.story.links.resolve import compute
from whyfor.story.repositories import repository_at

_DAYS = DAY // 1000
_NAMES = ("cart", "till", "shelf")


def _commit_for_months(repo: Repo, count: int) -> None:
    """One a day by a person, in the files that the session wrote and in others."""
    when = repo.clock.now + 40 * _DAYS
    out = []
    for number in range(count):
        who = f"Ada <ada@example.org> {when + number * _DAYS} +0000"
        subject = f"Work of day {number}"
        text = body(f"day_{number}", 40)
        path = f"{_NAMES[number % 3]}.py" if number % 2 else f"other_{number}.py"
        out.append(f"commit refs/heads/main\nauthor {who}\ncommitter {who}\n")
        out.append(f"data {len(subject)}\n{subject}\n")
        if not number:
            out.append(f"from {repo.head}\n")
        out.append(f"M 100644 inline {path}\ndata {len(text)}\n{text}\n")
    command = ["git", "fast-import", "--quiet"]
    subprocess.run(command, cwd=repo.path, input="".join(out).encode(), check=True)
    repo.git("reset", "-q", "--hard")


def _judge_all(settings: Settings, repo: Repo) -> LinkOutcome:
    with reading_local(settings) as library:
        repository = repository_at(library, name_place(repo.path))
        assert repository is not None
        return compute(library, repository, again=True)


def test_changes_are_read_only_of_commits_that_a_session_may_have_touched(
    plain: Workshop, settings: Settings
) -> None:
    agent = Agent("s1", plain.repo)
    made = []
    for name in _NAMES:
        agent.prompt(f"Add a {name}")
        agent.write(f"{name}.py", body(name))
        made.append(agent.commit(f"Add a {name}"))
    _commit_for_months(plain.repo, 400)
    plain.ingest(agent)
    outcome = _judge_all(settings, plain.repo)
    assert outcome.looked <= len(made) + 1, "the first one was made seconds before"
    assert outcome.read <= 2 * len(made)
    assert {commit for commit, told in plain.links().items() if told} == set(made)


def _large(name: str) -> dict[str, str]:
    """What a person changes in many files at once."""
    return {f"{name}/part_{number}.py": body(f"{name}_{number}", 20) for number in range(20)}


def test_a_large_commit_is_read_as_far_as_it_may_hold_what_a_session_wrote(
    plain: Workshop, settings: Settings
) -> None:
    agent, repo = Agent("s1", plain.repo), plain.repo
    agent.prompt("Add a cart and a till")
    agent.write("cart.py", body("cart"))
    made = agent.commit("Add a cart")
    others = []
    repo.clock.tick(600)  # else a commit may be the agent's by the time it was made
    for number in range(5):  # in the session's file, but nothing of the session's
        mine = {"cart.py": repo.read("cart.py") + body(f"hand_{number}", 3)}
        others.append(repo.commit(f"By hand {number}", {**_large(f"hand_{number}"), **mine}))
    agent.write("till.py", body("till"))
    found = repo.commit("Together", _large("together"))
    agent.edit("till.py", body("till"), body("till") + body("desk", 3))
    repo.git("mv", "till.py", "desk.py")
    moved = repo.commit("Move the till", _large("moved"))
    plain.ingest(agent)
    told = plain.links()
    assert told[made] == {agent.session_id: "output"}
    assert told[found] == told[moved] == {agent.session_id: "content"}
    assert not any(told[sha] for sha in others)
    parts = plain.show(found)["checkpoint"]["sessions"]
    assert [part["why"] for part in parts] == ["6 of 406 added lines"]
    outcome = _judge_all(settings, repo)
    assert outcome.looked >= len(others)
    assert outcome.read <= 4, "of the commits by hand one file each will do"
