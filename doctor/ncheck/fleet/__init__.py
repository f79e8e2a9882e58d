"""Ways to a node: paramiko, the ssh program, a command in place of ssh, or this very machine. One contract, `link`."""

from __future__ import annotations
