"""What must not be stored: private text, pauses, exclusions, what was forgotten."""
