"""Keys of records whose values are structure, not words: the lists of it, side by side.

- STRUCTURE stays when a message's words go, because it is private. It stands with the hooks,
  which can import nothing of ours.
- KEPT_IN_PAUSE stays of a message that was said in a pause: less, for no name of a tool, a model
  or a folder may be known of it.
- IDENTITIES, in small letters, are not changed by rules of redaction that only guess. Not among
  them are keys of STRUCTURE that a person or a model fills in, as `name`; but hashes are, which
  look like secrets.
- SEALED is changed by no rule: an agent checks these itself.
"""

from __future__ import annotations

from whyfor.hook.private import STRUCTURE

__all__ = ["IDENTITIES", "KEPT_IN_PAUSE", "PROTECTED", "SEALED", "STRUCTURE"]

KEPT_IN_PAUSE = frozenset(
    b"id type role timestamp sessionId projectHash startTime lastUpdated callId".split()
)
SEALED = frozenset(
    "signature thoughtsignature thought_signature encrypted_content encryptedcontent".split()
)
IDENTITIES = frozenset(
    "id uuid parentuuid leafuuid logicalparentuuid sessionid session_id parentsessionid "
    "tool_use_id tooluseid "
    "call_id callid toolcallid messageid message_id requestid request_id parent_id parentid "
    "agentid agent_id promptid "
    "sourcetooluseid turn_id thread_id turnid threadid timestamp created_at updated_at type role "
    "model version cwd "
    "gitbranch branch sha commit commit_hash hash "
    "checksum integrity snapshotid interactionid projecthash action_id created_timestamp "
    "createdat eventid llm_response_id method parent_session_id prompt_id "
    "time tool_call_id ts updatedat".split()
)
PROTECTED = SEALED | IDENTITIES
