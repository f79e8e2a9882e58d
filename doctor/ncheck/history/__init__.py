"""What earlier runs found: one SQLite file, which every run adds itself to (--history), and what it says of nodes."""
