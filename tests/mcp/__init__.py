"""The server for agents, as its clients meet it."""
