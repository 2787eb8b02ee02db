"""Attempts to break what is promised: each test is one attack, and states what must hold."""
