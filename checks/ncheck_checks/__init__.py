"""The built-in checks: one file a check, a folder a topic. They import nothing but `ncheck`."""

from __future__ import annotations
