"""The recorded clusters of fixtures/, made from short descriptions so that they stay consistent.

`python -m tests.recorded` writes them anew; a test holds the files to what these descriptions say.
"""
