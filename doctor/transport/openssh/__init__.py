"""SSH by the ssh program itself, and commands that stand in for it."""
