"""What ssh configuration says of each node, as OpenSSH reads it."""
