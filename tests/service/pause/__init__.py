"""Pause, resume and exclude: what a person did not want recorded is nowhere."""
