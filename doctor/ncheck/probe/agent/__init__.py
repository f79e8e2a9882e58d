"""A node's part in one step of the probe: one module per method, and what they share."""
