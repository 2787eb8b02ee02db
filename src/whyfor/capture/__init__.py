"""The write side: from the agents' files and the hooks' spool to stored events."""
