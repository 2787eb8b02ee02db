"""Telemetry that agents send: decoded, bounded, written down before it is acknowledged."""
