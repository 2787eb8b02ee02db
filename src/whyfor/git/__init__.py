"""All we ask of git."""
