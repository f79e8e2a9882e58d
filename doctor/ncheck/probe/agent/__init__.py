"""A node's part in one step of the probe: a module a means, and the ranks, counters and leftovers that they share."""
