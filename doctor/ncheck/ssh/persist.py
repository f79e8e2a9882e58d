"""Trying again where a server drops logins at random (MaxStartups), until the time is up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from ncheck.ssh import fault
from ncheck.ssh.fault import DroppedError, FaultError

T = TypeVar("T")


FIRST_PAUSE, LONGEST_PAUSE = 0.3, 3.0  # seconds; the first is also the least time that another try is worth


class Persistence:
    """Counts the attempts of one login and spaces them, jittered so that a crowd does not come back together."""

    def __init__(
        self,
        deadline: float,
        chance: Callable[[], float] = random.random,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.deadline, self.chance, self.pause = deadline, chance, pause
        self.attempts = 1

    @property
    def remaining(self) -> float:
        """Seconds that are left, never quite none."""
        return max(self.deadline - time.monotonic(), 0.001)

    def until_in(self, attempt: Callable[[], T], address: Callable[[], str]) -> T:
        """Return what the first undropped attempt returns. Raises FaultError: its own, or OVERLOADED at the end."""
        longest = FIRST_PAUSE
        while True:
            result = _tried(attempt)
            if not isinstance(result, DroppedError):
                return result
            pause = longest * (0.5 + self.chance())
            if pause + FIRST_PAUSE >= self.remaining:
                raise FaultError(fault.overloaded(address(), self.attempts, result.fault.detail))
            self.pause(pause)
            longest = min(2 * longest, LONGEST_PAUSE)
            self.attempts += 1


def _tried(attempt: Callable[[], T]) -> T | DroppedError:
    try:
        return attempt()
    except DroppedError as dropped:
        return dropped
