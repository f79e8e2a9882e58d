"""What the verdicts come to: the report and its exit code, what stands against a plan, and who stays out of it."""
