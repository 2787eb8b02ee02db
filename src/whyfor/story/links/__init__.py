"""Which sessions a commit came from."""
