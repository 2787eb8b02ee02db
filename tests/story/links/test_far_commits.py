"""Of commits that no session can have a part in, nothing but their names is read."""

from __future__ import annotations

import subprocess

from tests.story.links.workshop import Agent, Repo, Workshop, body
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.times import DAY
from whyfor.store.open import reading
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
    with reading(settings) as library:
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
