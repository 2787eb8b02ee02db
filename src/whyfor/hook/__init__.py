"""What agents and git run: files that stand alone, copied out of the package so that they
outlive it."""

from __future__ import annotations

FILES = ("hook.py", "announce.py", "private.py")  # what is copied to $WHYFOR_HOME/hook
