"""Whatever a hook is given on stdin, it ends in time, says nothing, and writes down nothing that
is private."""

from __future__ import annotations

import json
import os
import pty
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hook import Installed
from whyfor import hook as hook_folder
from whyfor.agents.facts import HOOK_SECONDS as SECONDS
from whyfor.capture import spool
from whyfor.hook import announce, private

CODEX_SESSION_END = 3.0  # seconds: the shortest limit an agent sets on a hook of ours


@pytest.fixture
def hook(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "home")


@contextmanager
def running(
    hook: Installed, stdin: int, agent: str, *words: str, **env: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A hook with this end of something as its stdin; at the end it has exited 0 and said
    nothing."""
    command = [hook.python, "-I", "-S", str(hook.folder / "hook.py"), "--agent", agent, *words]
    process = subprocess.Popen(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **env},
    )
    try:
        yield process
        said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, *said) == (0, b"", b"")


def held_open(hook: Installed, given: bytes, agent: str, *words: str, **env: str) -> float:
    """Run a hook whose stdin gets these bytes and is never closed; return how long it took."""
    reads, writes = os.pipe()
    begun = time.monotonic()
    with running(hook, reads, agent, *words, **env):
        os.write(writes, given)
    took = time.monotonic() - begun
    os.close(reads)
    os.close(writes)
    return took


def payload(hook: Installed, index: int = 0) -> Any:
    return json.loads(hook.lines()[index].payload)


# -- a stdin that does not end -------------------------------------------------------------------


def test_the_deadline_lies_below_every_limit_an_agent_sets() -> None:
    assert announce.SILENCE * announce.PAUSE < announce.LAST < CODEX_SESSION_END
    assert announce.LONGEST < SECONDS


def test_a_stdin_that_says_nothing_and_never_closes_is_not_waited_for(hook: Installed) -> None:
    agents = ["claude", "codex", "copilot", "gemini", "git"]
    env = {"CLAUDE_CODE_SESSION_ID": "s-1", "CODEX_THREAD_ID": "s-2"}
    with ThreadPoolExecutor() as together:
        list(together.map(lambda agent: held_open(hook, b"", agent, "Stop", **env), agents))
    lines = hook.lines()
    assert sorted(line.header["agent"] for line in lines) == agents
    for line in lines:
        assert (line.header["event"], line.header["incomplete"], line.header["env"]) == (
            "Stop",
            True,
            env,
        )
        assert line.payload == b"{}"


def test_what_was_announced_without_a_payload_is_understood_by_ingest(hook: Installed) -> None:
    held_open(hook, b"", "claude", "Stop", CLAUDE_CODE_SESSION_ID="s-1")
    (file,) = spool.files(hook.home)
    (envelope,) = spool.envelopes(file.read_bytes(), 0)
    assert isinstance(envelope, spool.Envelope)
    said = spool.signal(envelope, lambda chain, at: None)
    assert (envelope.incomplete, said.session_id, said.event) == (True, "s-1", "Stop")


def test_a_whole_payload_is_kept_though_another_process_holds_the_pipe_open(
    hook: Installed,
) -> None:
    given = b'{"session_id":"s-1","transcript_path":"/t","note":"a\\"} b"}\n'
    took = held_open(hook, given, "claude", "Stop")
    (line,) = hook.lines()
    assert line.payload == given.replace(b"\n", b" ")
    assert "incomplete" not in line.header
    assert took < CODEX_SESSION_END


TORN: list[tuple[bytes, dict[str, str]]] = [
    (
        b'{"session_id":"s-1","cwd":"/code","prompt":"half a wor',
        {"session_id": "s-1", "cwd": "/code"},
    ),
    (b'{"session_id":"s-1","transcript_path":"/co', {"session_id": "s-1"}),
    (b'{"session_id":"s-', {}),
    (b'{"cwd":"/a\\', {}),
    (b'{"prompt":"\\"session_id\\":\\"fake\\" ', {}),
    (b"\x00\xff\xfe", {}),
    (b"}", {}),
]


def test_of_a_torn_payload_what_says_whose_event_it_was_is_kept(tmp_path: Path) -> None:
    homes = [Installed(tmp_path / f"home-{number}") for number in range(len(TORN))]
    with ThreadPoolExecutor() as together:
        given = [item[0] for item in TORN]
        list(
            together.map(
                lambda home, torn: held_open(home, torn, "claude", "PostToolUse"), homes, given
            )
        )
    assert [payload(home) for home in homes] == [left for _, left in TORN]
    assert all(home.lines()[0].header["incomplete"] is True for home in homes)


def test_a_slow_writer_is_heard_to_the_end(hook: Installed) -> None:
    given = b'{"session_id":"s-1","transcript_path":"/t"}'
    reads, writes = os.pipe()
    with running(hook, reads, "claude", "Stop"):
        for at in range(0, len(given), 11):
            time.sleep(announce.PAUSE * 2)  # what is tested is the waiting itself
            os.write(writes, given[at : at + 11])
        os.close(writes)
    os.close(reads)
    assert hook.lines()[0].payload == given
    assert "incomplete" not in hook.lines()[0].header


def test_a_writer_that_drips_for_ever_is_left(hook: Installed) -> None:
    script = 'printf \'{"session_id":"s-1","x":"\'; while printf y; do sleep 0.2; done'
    with subprocess.Popen(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as writer:
        assert writer.stdout is not None
        with running(hook, writer.stdout.fileno(), "claude", "SessionEnd"):
            pass
        writer.kill()
    assert payload(hook) == {"session_id": "s-1"}
    assert hook.lines()[0].header["incomplete"] is True


def test_a_writer_that_never_stops_fills_neither_memory_nor_spool(hook: Installed) -> None:
    script = 'printf \'{"session_id":"s-1","x":"\'; exec yes'
    with subprocess.Popen(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as writer:
        assert writer.stdout is not None
        with running(hook, writer.stdout.fileno(), "claude", "SessionEnd"):
            pass
        writer.kill()
    assert payload(hook) == {"session_id": "s-1"}
    assert sum(path.stat().st_size for path in hook.spool.iterdir()) < 10_000


def test_a_terminal_is_not_read(hook: Installed) -> None:
    ours, theirs = pty.openpty()
    with running(hook, theirs, "claude", "Stop"):
        pass
    os.close(ours)
    os.close(theirs)
    assert hook.lines()[0].payload == b""
    assert "incomplete" not in hook.lines()[0].header


@pytest.mark.parametrize(
    "around", ["{} <&-", "{} </dev/null", "{} <&- >&- 2>&-", "ulimit -v 60000; {}"]
)
def test_without_a_stdin_the_event_is_announced_all_the_same(around: str, hook: Installed) -> None:
    for agent, event in (("claude", "Stop"), ("git", "post-commit"), ("git", "pre-push")):
        done = hook.run(agent, event, around=around)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(hook.lines()) == 3


# -- private text --------------------------------------------------------------------------------


def prompt(text: str) -> bytes:
    return b'{"session_id":"s-1","transcript_path":"/t","prompt":"' + text.encode() + b'","k":1}'


def spooled(hook: Installed) -> bytes:
    return b"".join(path.read_bytes() for path in hook.spool.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "<private>" * 1_000_000 + "hidden",
        "<private></private>" * 500_000 + "hidden",
        "x" * 9_000_000 + "<private>hidden</private>",
        "private " * 1_000_000 + "< Private >hidden",
        "\\u003cprivate\\u003e" * 400_000 + "hidden",
        '\\"<private>' * 800_000 + "hidden",
    ],
    ids=["open", "pairs", "one at the end", "words", "escaped", "quotes"],
)
def test_nine_megabytes_of_private_text_stay_private(text: str, hook: Installed) -> None:
    done = hook.run("claude", "UserPromptSubmit", payload=prompt(text))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert b"hidden" not in spooled(hook)
    assert payload(hook) == {"session_id": "s-1", "transcript_path": "/t"}
    hook.run("claude", "PostToolUse", payload=b'{"session_id":"s-1","tool_response":"hidden too"}')
    assert b"hidden" not in spooled(hook)


def test_a_large_payload_that_only_uses_the_word_is_kept(hook: Installed) -> None:
    given = prompt("x" * 2_000_000 + " private int a; private int b;")
    hook.run("claude", "UserPromptSubmit", payload=given)
    assert hook.lines()[0].payload == given


@pytest.mark.parametrize("size", [200, 300_000])
@pytest.mark.parametrize(
    "text",
    [
        "open <private>hidden <private>hidden</private> hidden</private> open",
        "open <private>hidden",
        "</private> open <private>hidden</private> open </private>",
        "open \\u003cprivate\\u003ehidden\\u003c/private\\u003e open",
        "open \\\\u003cprivate\\\\u003ehidden",
        'open < PRIVATE class=\\"x\\" >hidden<\\/private >',
        "open <private>hidden </privat> <private/> hidden",
        "open <privat<private>hidden</private>",
    ],
)
def test_tags_nested_unclosed_interleaved_and_escaped_hide_what_they_hold(
    text: str, size: int, hook: Installed
) -> None:
    for event in ("UserPromptSubmit", "PostToolUse"):
        hook.run("claude", event, payload=prompt("y" * size + text))
    assert b"hidden" not in spooled(hook)
    assert all(json.loads(line.payload)["session_id"] == "s-1" for line in hook.lines())


def test_a_prompt_of_which_half_arrived_hides_its_turn(hook: Installed) -> None:
    held_open(hook, b'{"session_id":"s-1","prompt":"<priv', "claude", "UserPromptSubmit")
    hook.run("claude", "PostToolUse", payload=b'{"session_id":"s-1","tool_response":"hidden"}')
    assert b"hidden" not in spooled(hook)
    hook.run("claude", "UserPromptSubmit", payload=prompt("another"))
    hook.run("claude", "PostToolUse", payload=b'{"session_id":"s-1","tool_response":"open"}')
    assert b"open" in spooled(hook)


# -- the cost of it ------------------------------------------------------------------------------

PIECES = [
    b"<private>",
    b"</private>",
    b"<private></private>",
    b"<private",
    b"\\u003cprivate",
    b"\\u003cprivate\\u003e",
    b"< \\n private \\n>",
    b"\\",
    b'\\"<private>',
    b'"<private>"',
    b'","<private>',
    b'","":["<private>',
    b"private ",
]
GROWTH = 4.0  # times as much per byte at sixteen times the size; quadratic work would be sixteen


def seconds(work: Callable[[], object]) -> float:
    def once() -> float:
        begun = time.process_time()
        work()
        return time.process_time() - begun

    return min(once() for _ in range(3))


@pytest.mark.parametrize("piece", PIECES)
def test_the_cost_of_looking_for_tags_grows_with_the_size_alone(piece: bytes) -> None:
    costs = []
    for size in (1, 4, 16):
        given = b'{"x":"<private>' + piece * (size * 16_000 // len(piece)) + b'"}'
        lower = given.lower()

        def look(given: bytes = given, lower: bytes = lower) -> None:
            private.marked(given)
            private.spans(given)
            private.text_spans(given)
            private.tags(lower, 0, len(lower))

        costs.append(max(seconds(look), 0.0005) / len(given))
    assert costs[1] < GROWTH * costs[0]
    assert costs[2] < GROWTH * costs[0]


def test_a_message_flooded_with_tags_is_left_after_the_first_hundred() -> None:
    """At a size at which looking at each tag would be seen."""
    flood = b'{"x":"' + b"<private>" * 1_000_000 + b'"}'
    plain = b'{"x":"<private>' + b"y" * len(flood) + b'"}'
    assert seconds(lambda: private.spans(flood)) < 10 * seconds(lambda: private.spans(plain)) + 0.05
    assert private.without(flood, private.spans(flood) or []) == b'{"x":""}'


def test_a_flood_in_a_later_record_takes_with_it_what_an_earlier_one_left_open() -> None:
    record = b'{"message":{"id":"m","content":"%s"}}'
    _, depth, _ = private.reach(record % b"a <private>b", frozenset(), 0)
    _, depth, closed = private.reach(record % (b"<private>" * 200), frozenset(), depth)
    assert depth > 0
    assert closed


@pytest.mark.parametrize("seed", range(20))
def test_up_to_the_hundredth_tag_each_is_honoured(seed: int) -> None:
    dice = random.Random(seed)
    number = dice.randrange(1, private.MOST)
    given = b'{"x":"' + b"<private>hidden</private>open " * number + b'"}'
    left = private.without(given, private.spans(given) or [])
    assert (left.count(b"open"), left.count(b"hidden")) == (number, 0)


def test_the_files_of_a_hook_import_nothing_that_must_be_found_first() -> None:
    for name in hook_folder.FILES:
        source = Path(hook_folder.__file__).with_name(name).read_text()
        imported = {
            line.split()[1] for line in source.splitlines() if line.lstrip().startswith("import ")
        }
        ours = {file.removesuffix(".py") for file in hook_folder.FILES}
        # only where a person asked for answers from the browser, once a server or its answer is there
        web = {"_socket", "select", "json"} if name == "browser_answer.py" else set()
        assert imported <= {"marshal", "posix", "sys", "time", "_thread", *ours, *web}, name
