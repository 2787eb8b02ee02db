"""What the records mean: pure functions over events."""
