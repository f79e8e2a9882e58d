"""The command line: commands, options, and the one error handler."""
