"""Finding things again: search."""
