"""Node to node: who must be able to reach whom."""
