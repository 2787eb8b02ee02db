"""The file of prepared rules: made by an ingest, read by the hook. Imports nothing."""

PREPARED = "rules.bin"  # in the folder of the hook
FORM = 2  # of what is in it
