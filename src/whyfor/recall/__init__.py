"""Search in stored sessions."""
