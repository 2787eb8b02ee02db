"""Rules: what may be answered for a person when an agent asks to run a command."""
