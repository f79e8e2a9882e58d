"""The meeting of a job's ranks: who came, who is missing, and one verdict for all."""

from __future__ import annotations
