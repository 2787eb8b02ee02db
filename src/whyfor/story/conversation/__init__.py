"""A conversation as one would like to read it: its turns, its pages, and what stands on them."""
