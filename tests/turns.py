"""What a test tries in turns: a part of it each day, and the next part on the next one. NCHECK_TURN repeats a day's."""

from __future__ import annotations

import os
import time

TURN = int(os.environ.get("NCHECK_TURN") or time.time() // 86400)
REPEAT = f"to repeat this: NCHECK_TURN={TURN}"
