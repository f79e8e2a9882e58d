"""`ncheck read`: what a saved output of a tool is, and what is wrong in it."""
