"""Agents that need no code: a TOML file says where their JSON lines are and what each means."""
