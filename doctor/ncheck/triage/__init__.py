"""Triage: logs of jobs that hang or fail, to causes with their evidence and a line to type."""

from __future__ import annotations

from ncheck.triage.causes import CAUSES, Cause
from ncheck.triage.diagnosis import Confidence, Diagnosis, diagnose, progress

__all__ = ["CAUSES", "Cause", "Confidence", "Diagnosis", "diagnose", "progress"]
