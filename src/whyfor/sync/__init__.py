"""Sharing with a team: what waits to be sent, how it is sent, and what others sent."""
