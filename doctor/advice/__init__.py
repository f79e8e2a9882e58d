"""Facts to a launch plan: what the job should be told, and what it gets right by itself."""
