"""The view of a conversation: its turns, its pages, and the items on them."""
