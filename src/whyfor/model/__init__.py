"""Plain structs, ids, times and errors that all rooms share; no I/O, no imports from other
rooms."""
