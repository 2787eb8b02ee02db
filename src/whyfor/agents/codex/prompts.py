"""Find the person's prompts among the texts that the program puts into user messages."""

from __future__ import annotations

import re
from typing import Any

from whyfor.agents.base import (
    as_dict,
    as_str,
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.codex.content import decode_arguments, image_data, texts
from whyfor.agents.codex.outcomes import outcome
from whyfor.agents.codex.record_place import RolloutPlace
from whyfor.agents.codex.thread import Thread
from whyfor.agents.facts import MARKER
from whyfor.model.findings import Record
from whyfor.model.ids import fold

# How text begins that the program put among the user's messages; newer files say so in their
# provenance.
INJECTED = (
    MARKER,
    "<environment_context>",
    "<environments_instructions>",
    "<user_instructions>",
    "<managed_developer_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<model_instructions>",
    "<model_switch>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "<multi_agent_role>",
    "<persistent_mode>",
    "<personality_spec>",
    "<app-context>",
    "<apps_instructions>",
    "<plugins_instructions>",
    "<recommended_plugins>",
    "<skills_instructions>",
    "<skill>",
    "<hook_prompt",
    "<goal_context>",
    "<codex_internal_context",
    "<startup_context>",
    "<context_window_reminder>",
    "<current_time_reminder>",
    "<realtime_conversation>",
    "<agent_message_board_notification>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_action>",
    "<user_shell_command>",
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via",
    "Warning: Your account was flagged",
)
_REQUEST = "## My request for Codex:"  # IDEs and the desktop app put what they know before it
_IMAGE_TAG = r"(?:<image\b(?P<attributes>[^>]*)>|</image>)\s*"
_PATH = r'path="([^"]*)"'
_SHELL = r"(?s)<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*<result>\n?(.*?)\n?</result>"
_NOTICE = r"(?s)<subagent_notification>\s*(.*?)\s*</subagent_notification>"
_CWD = r"<cwd>(.*?)</cwd>|Current working directory: (.*)"
_CONTEXT_MAX = 2000


class Prompts:
    def __init__(self, state: Record, thread: Thread) -> None:
        self.state = state
        self.thread = thread

    def message(self, item: Record, parts: list[Any], at: RolloutPlace) -> None:
        """Read a user message: the person's text and images, and what the program added."""
        origins = _origins(item)
        words: list[str] = []
        images: list[Record] = []
        path = None
        for index, part in enumerate(map(as_dict, parts)):
            text = get_str(part, "text")
            start = text.lstrip()
            origin = origins[index] if index < len(origins) else None
            if part.get("type") == "input_image":
                images.append(image_data(part, index, path))
            elif start.startswith(("<image", "</image>")) and (
                tag := re.fullmatch(_IMAGE_TAG, start)
            ):
                named = re.search(_PATH, tag["attributes"] or "")
                path = named[1] if named else None
            elif origin == "user" or (origin is None and not start.startswith(INJECTED)):
                words.append(text)
            else:
                self._told(start, at.key(item.get("id"), index), at)
        text = "\n".join(words)
        if text.strip() or images:
            self.state["heard"] = (get_int(self.state, "heard") or 0) + 1
            self._prompt(text, images, at.key(item.get("id")), at)

    def shown(self, event: Record, at: RolloutPlace) -> None:
        """Read the copy of a prompt that was shown on screen; needed only if the file lacks the
        prompt itself."""
        text = get_str(event, "message")
        if event.get("kind") not in (None, "plain") or text.lstrip().startswith(INJECTED):
            return
        heard = get_int(self.state, "heard") or 0
        if heard:
            self.state["heard"] = heard - 1
        elif text.strip():
            self._prompt(text, [], at.key(), at)

    def from_agent(self, item: Record, at: RolloutPlace) -> None:
        """Read a message from one agent of a team to another; it is often encrypted."""
        content = item.get("content")
        text = content if isinstance(content, str) else texts(content)
        said = text.partition("Payload:\n")[2] if text.startswith("Message Type:") else text
        data: Record = {"from": item.get("author"), "to": item.get("recipient")}
        key = at.key(item.get("id"))
        if self.state.get("side") and (
            text.startswith("Message Type: NEW_TASK") or item.get("trigger_turn")
        ):
            at.add(
                "user.prompt",
                key,
                "assistant",
                said,
                data=data if said else {**data, "redacted": True},
            )
        elif said.strip():
            at.add("status.changed", key, "subagent", said, data=data)

    def _prompt(self, text: str, images: list[Record], key: int, at: RolloutPlace) -> None:
        data: Record = {"images": images} if images else {}
        before, marker, request = text.partition(_REQUEST)
        if marker and before.lstrip().startswith("# "):
            text, data["context"] = request.strip(), before.strip()[:_CONTEXT_MAX]
        at.add(
            "user.prompt", key, "assistant" if self.state.get("side") else "user", text, data=data
        )

    def _told(self, text: str, key: int, at: RolloutPlace) -> None:
        """Read text that the program added to a user message, if it says something new."""
        if text.startswith("<user_shell_command>") and (ran := re.match(_SHELL, text)):
            output, code, _ = outcome(ran[2])
            at.add("tool.call", key, "user", ran[1], "user_shell", {"input": {"command": ran[1]}})
            data = {"exit_code": code, "failed": True} if code else {"exit_code": code}
            at.add("tool.result", fold(key, "result"), "user", output, data=data)
        elif text.startswith("<subagent_notification>") and (notice := re.match(_NOTICE, text)):
            told = as_dict(decode_arguments(notice[1]))
            status = told.get("status")
            word, said = (
                next(iter(status.items()), ("", "")) if isinstance(status, dict) else (status, "")
            )
            whom = {"session": told.get("agent_path") or told.get("agent_id"), "status": word}
            at.add("subagent.stopped", key, "subagent", as_str(said), data=whom)
        elif text.startswith(MARKER):
            at.add("status.changed", key, "system", text)
        elif text.startswith("<environment_context>") and not (self.state.get("place") or [""])[0]:
            found = re.search(_CWD, text)  # only the oldest files do not say it elsewhere
            self.thread.moved((found[1] or found[2]).strip() if found else "", at)


def _origins(item: Record) -> list[Any]:
    """Return who wrote each part of a message, if the file says so."""
    metadata = get_dict(item, "internal_chat_message_metadata_passthrough")
    parts = map(as_dict, get_list(metadata, "content_item_metadata"))
    return [get_dict(part, "provenance").get("type") for part in parts]
