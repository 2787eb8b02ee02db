"""Tern, an agent that exists only as a definition, and a session of it."""

from __future__ import annotations

from tests.agents.samples import (
    ANSWER,
    BEFORE,
    BRANCH,
    CLOSING,
    COMMAND,
    CWD,
    MODEL,
    PATCH,
    PROMPT,
    SECOND,
    SHOWN,
    THOUGHT,
    TITLE,
    WORDS,
    Sample,
    iso,
    lines,
)

ID = "tern-0000-0001"
INJECTED = "A note that the program added"
DEFINITION = """
name = "tern"
title = "Tern"
mark = "Te"
colour = "#667788"
folders = ["$TERN_HOME/flights", "~/.tern/flights"]
files = ["*.flight"]
resume = "tern --back {id}"

[session]
when = { kind = "takeoff", "format.name" = "tern" }
id = "flight"
cwd = "where.folder"

[record]
id = "nr"
time = "at"

[tools]
shell = ["Run"]
edit = ["Swap"]
write = ["Put"]

[arguments]
path = ["target"]
command = ["line"]
old = ["was"]
new = ["is"]
whole = ["body"]

[[read]]
when = { kind = "takeoff" }
as = "session"
cwd = "where.folder"
branch = "where.branch"
version = "format.version"
forked_from = "where.before"

[[read]]
when = { kind = "name" }
as = "title"
text = "words"

[[read]]
when = { kind = "say", who = "person" }
as = "prompt"
text = "words"

[[read]]
when = { kind = "say", who = ["program", "hook"] }
as = "injected"
text = "words"

[[read]]
when = { kind = "answer" }
each = "parts"
  [[read.part]]
  when = { thought = "*" }
  as = "think"
  text = "thought"
  model = "record.model"
  [[read.part]]
  when = { words = "*" }
  as = "say"
  text = "words"
  model = "record.model"
  [[read.part]]
  when = { tool = "*" }
  as = "call"
  call = "call"
  tool = "tool"
  input = "with"

[[read]]
when = { kind = "answer" }
as = "tokens"
model = "model"
input_tokens = "spent.in"
cache_read = "spent.cached"
output_tokens = "spent.out"
reasoning = "spent.thought"
includes_cache = true

[[read]]
when = { kind = "done" }
as = "result"
call = "call"
text = "shown"
exit_code = "code"
diff = "patch"

[[read]]
when = { kind = "landing" }
as = "skip"
"""
_number = iter(range(1, 1000))


def record(kind: str, **more: object) -> dict[str, object]:
    number = next(_number)
    return {"kind": kind, "nr": f"r{number}", "at": iso(number), **more}


def answer(*parts: dict[str, object]) -> dict[str, object]:
    spent = {"in": 1000, "cached": 600, "out": 50, "thought": 5}
    return record("answer", model=MODEL, parts=list(parts), spent=spent)


def call(ident: str, tool: str, **given: object) -> dict[str, object]:
    return {"tool": tool, "call": ident, "with": given}


SAMPLE = Sample(
    agent="tern",
    session_id=ID,
    files={
        ".tern/flights/2026/one.flight": lines(
            record(
                "takeoff",
                flight=ID,
                format={"name": "tern", "version": "1.2"},
                where={"folder": CWD, "branch": BRANCH, "before": "older-flight"},
            ),
            record("say", who="person", words=PROMPT),
            record("say", who="hook", words=INJECTED),
            answer(
                {"thought": THOUGHT},
                {"words": WORDS},
                call("t1", "Put", target="greeting.txt", body=BEFORE),
            ),
            record("done", call="t1", shown="written", code=0),
            answer(call("t2", "Swap", target="greeting.txt", was="world", **{"is": "harbour"})),
            record("done", call="t2", shown="swapped", patch=PATCH),
            answer(call("t3", "Run", line=COMMAND)),
            record("done", call="t3", shown=SHOWN, code=1),
            answer({"words": CLOSING}),
            record("name", words=TITLE),
            record("say", who="person", words=SECOND),
            answer({"words": ANSWER}),
            record("landing"),
        ),
    },
    tools=(("Put", "write"), ("Swap", "edit"), ("Run", "shell")),
    injected=(INJECTED,),
    title=TITLE,
    forked_from="older-flight",
    resume=f"tern --back {ID}",
)
