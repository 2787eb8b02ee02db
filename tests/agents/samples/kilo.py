from __future__ import annotations

from tests.agents.samples import TITLE, Sample
from tests.agents.samples.opencode import INJECTED, TOKENS, TOOLS, conversation

SAMPLE = Sample(
    agent="kilo",
    session_id="ses_0002",
    files={".local/share/kilo/kilo.db": conversation("ses_0002")},
    tools=TOOLS,
    injected=(INJECTED,),
    tokens=TOKENS,
    branch=None,
    title=TITLE,
    resume="kilo --session ses_0002",
)
