"""Databases of agents: read without a trace, row by row, as JSON lines."""
