"""What a live session does now, and how that is known."""
