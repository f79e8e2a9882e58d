"""Versions and software: what must be the same on every node."""
