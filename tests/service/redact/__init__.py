"""whyfor redact: what goes, what stays, and what a transcript still is afterwards."""
