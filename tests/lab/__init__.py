"""A lab of real hosts on one machine: namespaces, a real OpenSSH server each, and faults that are really made."""
