"""SSH by paramiko."""
