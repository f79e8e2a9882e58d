"""The readers of saved output, one module per family of tools; ncheck.parse.reading finds them."""
