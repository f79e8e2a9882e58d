"""The version of ncheck, for the wheel and for reports."""

__version__ = "0.1.0"
