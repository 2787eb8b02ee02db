"""Privacy: what is secret in a text, and what a person marked private."""
