"""The words of the product as plain structs, ids and errors; no I/O, imports nothing of ours."""
