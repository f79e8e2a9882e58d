"""The steps of a run, each a function of values; ncheck.pipeline puts them in order."""

from __future__ import annotations
