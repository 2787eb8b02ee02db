"""Who wrote lines, in the formats of other tools: Agent Trace and git-ai."""
