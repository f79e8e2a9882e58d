"""Triage: logs of jobs that hang or fail, to causes with their evidence and a line to type."""

from doctor.triage.causes import CAUSES, Cause
from doctor.triage.diagnosis import Confidence, Diagnosis, diagnose, progress

__all__ = ["CAUSES", "Cause", "Confidence", "Diagnosis", "diagnose", "progress"]
