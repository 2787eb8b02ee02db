"""A language server for editors: why a line is there, beside the line."""
