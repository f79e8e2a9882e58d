"""Parsers of the output of nccl-tests, perftest and NCCL's diagnostics."""
