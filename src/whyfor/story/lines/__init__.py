"""Which turn wrote a line: the edits of sessions, replayed onto the text that was committed."""
