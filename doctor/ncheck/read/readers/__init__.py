"""The readers of saved output, one module per family of tools; ncheck.read.reading finds them."""
