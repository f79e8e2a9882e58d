"""Parsers of what only triage reads: dumps of the flight recorder and NCCL's RAS."""
