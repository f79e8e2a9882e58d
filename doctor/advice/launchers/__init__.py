"""One module a launcher: how its line is spelled."""
