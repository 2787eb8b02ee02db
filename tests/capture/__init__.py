"""Capture: nothing that was written is lost, doubled or misread, whatever happens to files,
lines and processes."""
