"""NICs, and which of them a job should use."""
