"""`ncheck speedup`: how well training scales, from the logs of runs of several sizes."""
