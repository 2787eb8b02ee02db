"""While a person has paused us, or excluded a project, a hook writes nothing; what is not meant
goes on."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from tests.hook import Installed
from tests.hook.test_hook import EVENTS
from whyfor import hook as installed_files
from whyfor.capture.filters import excluded as exclude
from whyfor.capture.filters import pauses
from whyfor.config import Exclude, Settings
from whyfor.model.errors import BadInput
from whyfor.service.pause import Scope, pause, resume, scope_of


@pytest.fixture
def hook(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "whyfor")


def git(folder: Path, *words: str) -> None:
    name = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(folder), *name, *words], check=True, capture_output=True)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def said(
    hook: Installed, agent: str = "claude", event: str = "UserPromptSubmit", **more: object
) -> bool:
    """Whether the hook wrote something; it must say nothing and exit 0 either way."""
    before = len(hook.lines())
    fields = {"session_id": more.pop("session", "s-1"), "transcript_path": "/t", "prompt": "canary"}
    place = more.pop("told", None)
    payload = json.dumps({**fields, **({"cwd": place} if place else {})}).encode()
    done = hook.run(agent, event, payload=payload, **more)  # type: ignore[arg-type]
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return len(hook.lines()) > before


def test_while_everything_is_paused_no_hook_writes_anything(
    hook: Installed, settings: Settings
) -> None:
    hook.stand_in()
    pause(settings, Scope())
    for agent, event in EVENTS:
        assert not said(hook, agent, event), event
    assert not hook.spool.exists()
    assert hook.started() == [], "nor is an ingest started"
    resume(settings, Scope())
    assert said(hook)


def test_a_pause_with_an_end_ends_by_itself(hook: Installed, settings: Settings) -> None:
    pause(settings, Scope(), 3600)
    assert not said(hook)
    [found] = pauses.pending_pauses(settings.home)
    now = time.time_ns() // 1_000_000
    pauses.write_pause(
        settings.home, msgspec.structs.replace(found, since=now - 9000, until=now - 1)
    )
    assert said(hook)


def test_a_pause_of_a_repository_is_of_all_its_work_trees_and_of_no_other(
    hook: Installed, settings: Settings, tmp_path: Path
) -> None:
    shop, other = repository(tmp_path / "the shop"), repository(tmp_path / "the shop two")
    git(shop, "worktree", "add", "-q", str(tmp_path / "before"))
    pause(settings, scope_of(settings, tmp_path / "before", ".", None))
    git(shop, "worktree", "add", "-q", str(tmp_path / "after"))
    (shop / "src" / "deep").mkdir(parents=True)
    inside = [shop, shop / "src" / "deep", tmp_path / "before", tmp_path / "after"]
    assert [said(hook, cwd=at) for at in inside] == [False] * 4
    assert [said(hook, "git", "post-commit", cwd=at) for at in inside] == [False] * 4
    assert not said(hook, cwd=other, told=str(shop)), "where the agent says it is counts too"
    assert not said(hook, cwd=other, env={"CLAUDE_PROJECT_DIR": str(shop)})
    assert not said(hook, "git", "post-commit", cwd=other, env={"GIT_DIR": str(shop / ".git")})
    assert said(hook, cwd=other)
    assert said(hook, cwd=tmp_path)
    resume(settings, scope_of(settings, shop, ".", None))
    assert said(hook, cwd=shop)


def test_a_pause_of_a_session_is_of_that_one_alone(hook: Installed, settings: Settings) -> None:
    pause(settings, Scope("claude", "s-1"))
    assert not said(hook)
    assert said(hook, session="s-2")
    assert said(hook, session="s-11")
    assert said(hook, "codex", "Stop"), "another agent's session may be called the same"
    assert not said(hook, "git", "post-commit", session="", env={"WHYFOR_SESSION": "claude:s-1"})
    assert not said(hook, "git", "post-commit", session="", env={"CLAUDE_CODE_SESSION_ID": "s-1"})
    assert said(hook, "git", "post-commit", session="", env={"CLAUDE_CODE_SESSION_ID": "s-2"})
    resume(settings, Scope("claude", "s-1"))
    assert said(hook)


def test_what_was_typed_cannot_pass_for_the_session_or_the_folder(
    hook: Installed, settings: Settings
) -> None:
    pause(settings, Scope("claude", "s-1"))
    typed = json.dumps({"session_id": "s-2", "prompt": '"session_id": "s-1", "cwd": "/"'}).encode()
    hook.run("claude", "UserPromptSubmit", payload=typed)
    assert len(hook.lines()) == 1


def test_doctors_probe_arrives_all_the_same(hook: Installed, settings: Settings) -> None:
    pause(settings, Scope())
    assert said(hook, env={"WHYFOR_PROBE": "nonce"})


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff", b"until 1\n", b"since x\nuntil y\n", b"since 1\nuntil \n"]
)
def test_a_damaged_pause_is_never_in_the_way(
    content: bytes, hook: Installed, settings: Settings
) -> None:
    pause(settings, Scope("claude", "other"))
    (settings.home / pauses.FOLDER / "damaged").write_bytes(content)
    understood = pauses.read_pause(settings.home / pauses.FOLDER / "damaged") is not None
    assert said(hook) is not understood, "and if it counts, status shows it"


def test_the_session_is_still_exported_so_that_it_can_be_paused_and_resumed_from_inside(
    hook: Installed, settings: Settings, tmp_path: Path
) -> None:
    pause(settings, Scope())
    file = tmp_path / "env"
    assert not said(hook, "claude", "SessionStart", env={"CLAUDE_ENV_FILE": str(file)})
    assert "WHYFOR_SESSION='claude:s-1'" in file.read_text()


# -- excluded ------------------------------------------------------------------------------------


def excluding(settings: Settings, *projects: str, agents: tuple[str, ...] = ()) -> None:
    exclude.write_exclusions(settings, exclude.Excluded(Exclude(list(projects), list(agents))), [])


def test_hooks_in_an_excluded_folder_write_nothing(
    hook: Installed, settings: Settings, tmp_path: Path
) -> None:
    client, other = tmp_path / "work" / "client-x", tmp_path / "work" / "client-xy"
    for folder in (client / "src", other):
        folder.mkdir(parents=True)
    excluding(settings, str(client))
    assert [said(hook, cwd=at) for at in (client, client / "src", other)] == [False, False, True]
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "work")
    excluding(settings, str(link / "client-xy"))
    assert [said(hook, cwd=at) for at in (client, other)] == [True, False]
    excluding(settings, "*/client-*")
    assert [said(hook, cwd=at) for at in (client / "src", other, tmp_path / "work")] == [
        False,
        False,
        True,
    ]
    excluding(settings)
    assert not (settings.home / exclude.FILE).exists()
    assert said(hook, cwd=client)


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/secret.git",
        "git@github.com:acme/secret.git",
        "ssh://git@github.com:22/Acme/Secret/",
        "https://user:pass@github.com/acme/secret",
    ],
)
def test_hooks_know_an_excluded_project_by_its_remote(
    url: str, hook: Installed, settings: Settings, tmp_path: Path
) -> None:
    clone = repository(tmp_path / "clone")
    git(clone, "remote", "add", "origin", url)
    git(clone, "worktree", "add", "-q", str(tmp_path / "tree"))
    excluding(settings, "git@github.com:acme/other.git")
    assert said(hook, cwd=clone)
    for pattern in (
        "github.com/acme/secret",
        "https://github.com/acme/secret.git",
        "github.com/acme/*",
        "*/secret",
    ):
        excluding(settings, pattern)
        assert not said(hook, cwd=clone)
        assert not said(hook, "git", "post-commit", cwd=tmp_path / "tree")
        assert exclude.Excluded(Exclude([pattern])).covers(str(clone)), "ingest agrees"


def test_an_excluded_agent_is_not_heard(hook: Installed, settings: Settings) -> None:
    excluding(settings, agents=("codex",))
    assert not said(hook, "codex", "Stop")
    assert said(hook, "claude", "Stop")


def test_hook_and_ingest_read_a_pattern_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(installed_files.__file__).parent)
    exclusions = importlib.import_module("exclusions")
    rng = random.Random(7)
    agreed = {True: 0, False: 0}
    for _ in range(5000):
        pattern = rng.choice(["/", "*"]) + "".join(
            rng.choice("ab/*") for _ in range(rng.randrange(1, 8))
        )
        path = "/" + "".join(rng.choice("ab/") for _ in range(rng.randrange(9)))
        plain = pattern.rstrip("/")
        ours = exclude._pattern(plain).match(path) is not None
        assert exclusions.covers(plain.encode(), path.encode()) == ours, (pattern, path)
        agreed[ours] += 1
    assert min(agreed.values()) > 500


def test_a_setting_that_excludes_nothing_is_refused(settings: Settings) -> None:
    for wrong in ("client-x", "work/client-x", "", "*", "~client"):
        with pytest.raises(BadInput):
            exclude.Excluded(Exclude([wrong]))
    with pytest.raises(BadInput, match="codx"):
        exclude.Excluded(Exclude(agents=["codx"]))


@pytest.mark.parametrize(
    "text", ["canary", 'a "canary"', "canary\\", '\\"canary\\\\"', "", "é\ncanary"]
)
@pytest.mark.parametrize("gap", [(",", ":"), (", ", ": ")])
def test_what_an_agent_tells_again_at_the_end_of_a_turn_is_left_to_its_transcript(
    text: str, gap: tuple[str, str], hook: Installed
) -> None:
    payload = {
        "session_id": "s",
        "prompt": text,
        "prompt_response": text,
        "hook_event_name": "AfterAgent",
        "n": 1,
    }
    hook.run("gemini", "AfterAgent", payload=json.dumps(payload, separators=gap).encode())
    assert json.loads(hook.lines()[0].payload) == {**payload, "prompt": "", "prompt_response": ""}
    stop = {"last_assistant_message": text, "session_id": "s", "transcript_path": "/t"}
    hook.run("claude", "Stop", payload=json.dumps(stop, separators=gap).encode())
    assert json.loads(hook.lines()[1].payload) == {**stop, "last_assistant_message": ""}


def test_a_payload_torn_inside_what_is_told_again_keeps_nothing_of_it(hook: Installed) -> None:
    hook.run("gemini", "AfterAgent", payload=b'{"session_id": "s", "prompt_response": "canary')
    assert json.loads(hook.lines()[0].payload) == {"session_id": "s", "prompt_response": ""}


def test_what_is_told_again_may_be_long_and_full_of_quotes(hook: Installed) -> None:
    payload = {"prompt_response": '"' * 1_000_000 + "\\" * 1_000_000, "session_id": "s"}
    hook.run("gemini", "AfterAgent", payload=json.dumps(payload).encode())
    assert json.loads(hook.lines()[0].payload) == {"prompt_response": "", "session_id": "s"}
