"""From the outside world to events: the write side."""
