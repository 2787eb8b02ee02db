"""How things look in JSON: the only place that says so.

`--json`, the HTTP API, the stream and JSON exports all send these structs. Their fields are a
promise that tests/test_wire.py keeps.
"""
