"""What the checks make of what was measured: who failed, who is slow, what fell short, what went astray."""
