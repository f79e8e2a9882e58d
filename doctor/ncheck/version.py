"""The version of ncheck, for the wheel and for reports."""

__version__ = "0.2.0"
