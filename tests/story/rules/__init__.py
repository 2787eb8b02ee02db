"""Tests of rules: what they allow, what they must not, and what happens when it runs."""
