"""The host itself: clock and limits."""
