"""From facts to a launch plan: the variables that the job needs, and the command line that starts it."""
