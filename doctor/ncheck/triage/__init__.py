"""Triage: the log of a job that hangs or fails, and the job itself, to causes with evidence and a command to type."""
