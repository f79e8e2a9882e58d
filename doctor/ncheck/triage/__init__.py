"""Triage: the log of a job that hangs or fails, to causes with their evidence and a command to fix or look further."""

from __future__ import annotations

from ncheck.triage.causes import CAUSES, Cause
from ncheck.triage.diagnosis import Confidence, Diagnosis, diagnose, progress, trouble_at_the_end

__all__ = ["CAUSES", "Cause", "Confidence", "Diagnosis", "diagnose", "progress", "trouble_at_the_end"]
