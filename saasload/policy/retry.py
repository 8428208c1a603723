"""When a call that was certainly not executed may be sent again."""

import random
import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from saasload.profile import RetrySpec

FLOOR_S = 1.0
"""No answer that asks for a wait is followed by another call sooner than this."""

LONGEST_DATE = 64

_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{0,9})?")


@dataclass(frozen=True, slots=True)
class SendAgain:
    """Send it again, `delay_s` from now."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Enough tries."""

    tries: int


def after_refusal(spec: RetrySpec, attempt: int, asked_s: float | None, rng: random.Random) -> SendAgain | GiveUp:
    """Decide on a call that the target answered without executing it.

    `asked_s` is the wait the answer asks for. It is honoured in full, with up to a tenth more so that
    companies do not come back at one instant; without it, full jitter over a growing ceiling.
    """
    if attempt >= spec.attempts:
        return GiveUp(attempt)
    if asked_s is not None:
        return SendAgain(max(FLOOR_S, asked_s) + rng.uniform(0.0, min(0.1 * asked_s, 1.0)))
    return SendAgain(max(FLOOR_S, backoff(spec, attempt, rng)))


def after_not_sent(spec: RetrySpec, attempt: int, rng: random.Random) -> SendAgain | GiveUp:
    """Decide on a call that never reached the target."""
    if attempt >= spec.attempts:
        return GiveUp(attempt)
    return SendAgain(backoff(spec, attempt, rng))


def backoff(spec: RetrySpec, attempt: int, rng: random.Random) -> float:
    """Draw a full-jitter delay in seconds: uniform below a ceiling that doubles with each attempt."""
    # 2**attempt overflows a float long before a retry budget does.
    return rng.uniform(0.0, min(spec.cap_s, spec.base_s * 2.0 ** min(attempt - 1, 30)))


def retry_after(value: str | None, wall: float) -> float | None:
    """Read a Retry-After header (RFC 9110 section 10.2.3): seconds from now, or None for nonsense.

    `wall` is the answer's own Date, or our clock, in epoch seconds. Negative, past, empty and endless
    values are nonsense: the caller then backs off by its own rule.

    >>> retry_after("2.5", 0.0)
    2.5
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        seconds = float(text)
    elif len(text) <= LONGEST_DATE:
        try:
            date = parsedate_to_datetime(text)
            # An HTTP date is in GMT whether it says so or not; a naive one would be taken as our local time.
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - wall
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    else:
        return None
    return seconds if 0.0 < seconds < 366 * 86400.0 else None
