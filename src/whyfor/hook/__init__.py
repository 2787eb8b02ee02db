"""What agents and git run. These files are copied out of the package, so that they work without
it."""

from __future__ import annotations

# What is copied to $WHYFOR_HOME/hook, in this order: a module is there before announce.py needs it.
FILES = (
    "hook.py",
    "private.py",
    "private_turns.py",
    "exclusions.py",
    "launcher.py",
    "note_request.py",
    "shell_words.py",
    "shell_calls.py",
    "block_name.py",
    "memory_block.py",
    "prompt_words.py",
    "prompt_notes.py",
    "rule_form.py",
    "rule_answer.py",
    "browser_answer.py",
    "announce.py",
)
