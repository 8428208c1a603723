"""What reply headers say about limits.

Sources: Retry-After is RFC 9110 section 10.2.3 (seconds or an HTTP date), `retry-after-ms` a common extension. The IETF
fields are read in the shapes of draft-ietf-httpapi-ratelimit-headers: 03 (`RateLimit-Limit`, `-Remaining`, `-Reset`),
07 (`RateLimit: limit=…, remaining=…, reset=…`) and 08 on (`RateLimit: "name";r=…;t=…` with `RateLimit-Policy:
"name";q=…;w=…`). Everything else is named by the platform's profile, for instance a pair for the minute and one for
the day. What clients were seen to do wrong with them is in docs/decisions/0006.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Literal

from saasload.policy.retry import FLOOR_S, LONGEST_DATE, retry_after
from saasload.profile import PlatformProfile

Unit = Literal["guess", "seconds", "epoch_s", "epoch_ms"]

LONGEST_WINDOW_S = 32 * 86_400.0
"""A month: no reset further away than this is believed."""

_LARGEST = 10**15
_NUMBER = re.compile(r"[0-9]{1,18}(\.[0-9]{0,9})?")
_PARAMETER = re.compile(r'([a-z]+)\s*=\s*"?([0-9]{1,15})')
_POLICY = re.compile(r'\s*"?([^";,=]{0,64})"?\s*((?:;[^,]*)?)')


@dataclass(frozen=True, slots=True)
class WindowHeaders:
    """The header names of one window, "" for those that the platform does not send.

    `window` is the name that facts come under, `problem` the value of the platform's problem header that means it.
    """

    window: str
    period_s: float
    limit: str = ""
    remaining: str = ""
    reset: str = ""
    unit: Unit = "guess"
    problem: str = ""


@dataclass(frozen=True, slots=True)
class HeaderSpec:
    """All that a platform's replies may say; `problem` names the header that says which limit was hit."""

    windows: tuple[WindowHeaders, ...] = ()
    problem: str = ""


def header_spec(profile: PlatformProfile) -> HeaderSpec:
    """Take the header names from a profile."""
    periods = {limit.label: limit.period_s for limit in profile.limits}
    windows = tuple(
        WindowHeaders(
            named.limit,
            periods.get(named.limit, 60.0),
            limit=named.limit_header.lower(),
            remaining=named.remaining_header.lower(),
            reset=named.reset_header.lower(),
            unit=named.unit,
            problem=named.problem,
        )
        for named in profile.limit_headers
        if named.limit in periods
    )
    return HeaderSpec(windows, profile.problem_header.lower())


@dataclass(frozen=True, slots=True)
class WindowFact:
    """What one reply says about one window; None for what it does not say, or says in a way that cannot be.

    `reset_s` counts from the reply's own Date, so a clock that differs from ours does no harm; `reset_at_s` is the
    same instant on the server's clock, None where the reply states no absolute time and no Date.
    """

    window: str
    limit: int | None = None
    remaining: int | None = None
    reset_s: float | None = None
    reset_at_s: float | None = None

    @property
    def used(self) -> int | None:
        """How many calls the server has counted in the window, whoever made them."""
        return None if self.limit is None or self.remaining is None else max(0, self.limit - self.remaining)


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """What one reply says about limits.

    `date_s` is its Date in epoch seconds; `asked_s` the wait that Retry-After asks for; `hit` the window that a
    problem header names.
    """

    windows: Mapping[str, WindowFact] = field(default_factory=dict)
    date_s: float | None = None
    asked_s: float | None = None
    hit: str = ""

    def exhausted(self) -> list[WindowFact]:
        """List the windows that a refusal can be put down to: the one it names, else those with nothing left."""
        if self.hit in self.windows:
            return [self.windows[self.hit]]
        if self.hit:
            return [WindowFact(self.hit)]
        return [fact for fact in self.windows.values() if fact.remaining == 0]

    def wait_s(self, *, floor_s: float = FLOOR_S) -> float | None:
        """Say how long a refused caller should wait; None where nothing usable is said, so that it backs off by itself.

        A wait that the answer asks for goes before one that follows from resets, the longest of the exhausted
        windows'. It is never below the floor.
        """
        if self.asked_s is not None:
            return max(floor_s, self.asked_s)
        resets = [fact.reset_s for fact in self.exhausted() if fact.reset_s is not None]
        return max(floor_s, *resets) if resets else None


def read_limits(headers: Mapping[str, str], spec: HeaderSpec, wall_s: float) -> LimitFacts:
    """Read what a reply says about limits; header names come in lower case.

    `wall_s` stands in for a missing Date: our best estimate of the server's clock. Nothing raises: what cannot be
    understood is as good as not there.

    >>> read_limits({"retry-after": "2.5"}, HeaderSpec(), 0.0).wait_s()
    2.5
    """
    date_s = _date(headers.get("date"))
    base_s = wall_s if date_s is None else date_s
    windows = {fact.window: fact for fact in _ietf(headers, spec, base_s)}
    for names in spec.windows:
        fact = _named(headers, names, base_s)
        if fact is not None:
            windows[names.window] = fact
    hit = headers.get(spec.problem.lower(), "").strip().lower() if spec.problem else ""
    named = next((names.window for names in spec.windows if hit and names.problem.lower() == hit), "")
    return LimitFacts(windows, date_s, _asked(headers, base_s), named)


@lru_cache(maxsize=16)
def _date(value: str | None) -> float | None:
    if value is None or len(value) > LONGEST_DATE:
        return None
    try:
        date = parsedate_to_datetime(value)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _asked(headers: Mapping[str, str], base_s: float) -> float | None:
    """Read the wait asked for: milliseconds go before seconds, for they say it more exactly."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None and 0.0 < milliseconds < LONGEST_WINDOW_S * 1000.0:
        return milliseconds / 1000.0
    return retry_after(headers.get("retry-after"), base_s)


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _count(text: str | None, *, least: int) -> int | None:
    # draft 03 appends policies to the number: `100, 100;w=60`
    number = _number((text or "").partition(",")[0].partition(";")[0])
    return int(number) if number is not None and number.is_integer() and least <= number < _LARGEST else None


def _named(headers: Mapping[str, str], names: WindowHeaders, base_s: float) -> WindowFact | None:
    """Read one window by the names its profile gives; None where none of them is there."""
    texts = [headers.get(name.lower()) if name else None for name in (names.limit, names.remaining, names.reset)]
    if not any(texts):
        return None
    limit, remaining = _count(texts[0], least=1), _count(texts[1], least=0)
    at_s = _instant(texts[2], names.unit, base_s, names.period_s)
    return WindowFact(names.window, limit, remaining, None if at_s is None else at_s - base_s, at_s)


def _instant(text: str | None, unit: Unit, base_s: float, period_s: float) -> float | None:
    """Turn a reset into an instant of the server's clock.

    It must lie ahead, and no further than the window is long (with two seconds for rounding): a reset of 0, one in
    1970 or one in 50,000 years is not believed. A guess takes the one unit in which it does: seconds, epoch seconds
    and epoch milliseconds are some orders of magnitude apart, so that no two can.
    """
    number = _number(text)
    if number is None:
        return _within(_date(text), base_s, period_s)
    readings: dict[Unit, float] = {"seconds": base_s + number, "epoch_s": number, "epoch_ms": number / 1000.0}
    for name, at_s in readings.items():
        if unit in {name, "guess"} and _within(at_s, base_s, period_s) is not None:
            return at_s
    return None


def _within(at_s: float | None, base_s: float, period_s: float) -> float | None:
    if at_s is None or not math.isfinite(at_s):
        return None
    return at_s if 0.0 < at_s - base_s <= min(period_s, LONGEST_WINDOW_S) + 2.0 else None


def _ietf(headers: Mapping[str, str], spec: HeaderSpec, base_s: float) -> list[WindowFact]:
    """Read the IETF's fields in the shapes of all their drafts."""
    if not ("ratelimit" in headers or "ratelimit-remaining" in headers or "ratelimit-reset" in headers):
        return []
    policies = _policies(headers.get("ratelimit-policy", "") or headers.get("ratelimit-limit", ""))
    now = headers.get("ratelimit", "")[:2000]
    if not now:
        return _draft_03(headers, spec, policies, base_s)
    if "remaining" in now:
        values = dict(_PARAMETER.findall(now))
        texts = {"q": values.get("limit"), "r": values.get("remaining"), "t": values.get("reset")}
        return [_fact("", {**next(iter(policies.values()), {}), **texts}, spec, base_s)]
    facts = []
    for name, text in _items(now):
        policy = policies.get(name, {})
        facts.append(_fact(name, {**policy, **dict(_PARAMETER.findall(text))}, spec, base_s))
    return facts


def _draft_03(
    headers: Mapping[str, str], spec: HeaderSpec, policies: Mapping[str, Mapping[str, str | None]], base_s: float
) -> list[WindowFact]:
    names = {"q": "ratelimit-limit", "r": "ratelimit-remaining", "t": "ratelimit-reset"}
    texts = {key: headers.get(name) for key, name in names.items()}
    if texts["r"] is None and texts["t"] is None:
        return []
    period = next((policy["w"] for policy in policies.values() if "w" in policy), None)
    return [_fact("", {**texts, "w": period}, spec, base_s)]


def _policies(text: str) -> dict[str, Mapping[str, str | None]]:
    return {name: dict(_PARAMETER.findall(rest)) for name, rest in _items(text[:2000]) if rest}


def _items(text: str) -> list[tuple[str, str]]:
    matches = (_POLICY.match(item) for item in text.split(",")[:20])
    return [(match[1].strip(), match[2]) for match in matches if match]


def _fact(name: str, values: Mapping[str, str | None], spec: HeaderSpec, base_s: float) -> WindowFact:
    """Name a fact by the profile's window of the same length, else by its own name."""
    period_s = _number(values.get("w"))
    same = (known for known in spec.windows if known.window == name or known.period_s == period_s)
    known = next(same, None)
    if known is None and len(spec.windows) == 1 and period_s is None:
        known = spec.windows[0]
    length_s = known.period_s if known else period_s or LONGEST_WINDOW_S
    at_s = _instant(values.get("t"), "seconds", base_s, length_s)
    window = known.window if known else name or "default"
    reset_s = None if at_s is None else at_s - base_s
    return WindowFact(window, _count(values.get("q"), least=1), _count(values.get("r"), least=0), reset_s, at_s)
