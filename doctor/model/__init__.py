"""Frozen data that the whole house shares: no I/O, no judgement."""
