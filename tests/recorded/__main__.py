"""python -m tests.recorded: write fixtures/ anew from the descriptions."""

from pathlib import Path

from .make import write

write(Path(__file__).parents[2] / "fixtures")
