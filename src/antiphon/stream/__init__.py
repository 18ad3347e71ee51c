"""Chunks in, events out. No I/O, no clock, no async below `handler.py`."""
