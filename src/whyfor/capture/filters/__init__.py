"""Filters for what must not be stored: private text, pauses, exclusions, forgotten text."""
