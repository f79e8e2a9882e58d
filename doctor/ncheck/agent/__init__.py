"""What runs on a node: Python 3.6 syntax and the standard library only, imported from memory, nothing written.

The head imports these modules too: for the frames, and to serve recorded answers by the same loop.
"""
