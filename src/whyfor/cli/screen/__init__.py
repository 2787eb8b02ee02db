"""What `whyfor top` shows: Now, and a session, in a terminal; every word of a transcript is data
there."""
