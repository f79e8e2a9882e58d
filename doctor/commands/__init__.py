"""The commands: each reads its options, calls one function of the house and prints what it returns."""
