"""Whyfor keeps the conversation behind every commit."""

__version__ = "0.1.0"
