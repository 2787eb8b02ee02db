"""What somebody or something does to break a promise: each file here is one way to try."""
