"""Limits: what a company may ask for in a minute and in a day, and how replies say so."""

from dataclasses import dataclass
from typing import Any

from mock_server.scenario import CompanySpec, LimitSpec

MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86_400

Headers = list[tuple[bytes, bytes]]

_ERRORS = frozenset({400, 401, 403, 404})


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call was let in, and the headers that tell."""

    allowed: bool
    headers: Headers
    frees_at_s: float = 0.0
    """When refused: the mock date at which to ask again."""


class _Windows:
    """One company's fixed windows on the clock."""

    __slots__ = ("day", "day_calls", "minute", "minute_calls")

    def __init__(self) -> None:
        self.minute = self.day = -1
        self.minute_calls = self.day_calls = 0


class Limits:
    """Counts calls by company: minutes of the clock and UTC days, shared by every way to travel.

    An admitted call is counted when it arrives; a refused one is not counted.
    """

    def __init__(self, spec: LimitSpec, companies: dict[int, CompanySpec]) -> None:
        """Start with nothing used."""
        self._spec = spec
        self._companies = companies
        self._windows: dict[int, _Windows] = {}
        self._errors = ErrorBudget(spec.errors_per_hour)

    def charge(self, company: int, endpoint: str, wall_s: float) -> Verdict:
        """Count a call that arrives at the mock date `wall_s`, or refuse it."""
        blocked_until_s = self._errors.blocked_until_s(company, endpoint, wall_s)
        if blocked_until_s:
            return Verdict(
                allowed=False, headers=self._retry_after(blocked_until_s, wall_s), frees_at_s=blocked_until_s
            )
        windows = self._roll(company, wall_s)
        per_minute, per_day = self._caps(company)
        if windows.day_calls >= per_day:
            frees_at_s = float((windows.day + 1) * DAY_S)
            headers = _headers(b"x-ratelimit", per_day, 0, frees_at_s)
            return Verdict(
                allowed=False, headers=headers + self._retry_after(frees_at_s, wall_s), frees_at_s=frees_at_s
            )
        if windows.minute_calls >= per_minute:
            frees_at_s = float((windows.minute + 1) * MINUTE_S)
            headers = _headers(b"x-ratelimit-minutely", per_minute, 0, frees_at_s)
            return Verdict(
                allowed=False, headers=headers + self._retry_after(frees_at_s, wall_s), frees_at_s=frees_at_s
            )
        windows.day_calls += 1
        windows.minute_calls += 1
        day = _headers(b"x-ratelimit", per_day, per_day - windows.day_calls, (windows.day + 1) * DAY_S)
        minute_left = per_minute - windows.minute_calls
        minute = _headers(b"x-ratelimit-minutely", per_minute, minute_left, (windows.minute + 1) * MINUTE_S)
        return Verdict(allowed=True, headers=day + minute)

    def answered(self, company: int, endpoint: str, *, status: int, wall_s: float) -> None:
        """Hear how a call ended: too many errors in an hour block the endpoint."""
        self._errors.answered(company, endpoint, status=status, wall_s=wall_s)

    def left(self, company: int, wall_s: float) -> tuple[int, int]:
        """Return how many calls a company has left in this minute and in this day, without counting one."""
        per_minute, per_day = self._caps(company)
        windows = self._windows.get(company)
        if windows is None:
            return per_minute, per_day
        minute = windows.minute_calls if windows.minute == int(wall_s // MINUTE_S) else 0
        day = windows.day_calls if windows.day == int(wall_s // DAY_S) else 0
        return max(per_minute - minute, 0), max(per_day - day, 0)

    def dump(self) -> dict[str, Any]:
        """Return what is used, to go on with after a restart."""
        windows = [(company, w.minute, w.minute_calls, w.day, w.day_calls) for company, w in self._windows.items()]
        return {"windows": windows, "errors": self._errors.dump()}

    def load(self, kept: dict[str, Any]) -> None:
        """Go on from what an earlier process had counted."""
        for company, minute, minute_calls, day, day_calls in kept["windows"]:
            windows = self._windows[company] = _Windows()
            windows.minute, windows.minute_calls, windows.day, windows.day_calls = minute, minute_calls, day, day_calls
        self._errors.load(kept["errors"])

    def _roll(self, company: int, wall_s: float) -> _Windows:
        windows = self._windows.get(company)
        if windows is None:
            windows = self._windows[company] = _Windows()
        minute, day = int(wall_s // MINUTE_S), int(wall_s // DAY_S)
        if day != windows.day:
            windows.day, windows.day_calls = day, 0
        if minute != windows.minute:
            windows.minute, windows.minute_calls = minute, self._spec.other_calls_per_minute
            windows.day_calls += self._spec.other_calls_per_minute
        return windows

    def _caps(self, company: int) -> tuple[int, int]:
        own = self._companies.get(company)
        if own is None:
            return self._spec.calls_per_minute, self._spec.calls_per_day
        return own.calls_per_minute or self._spec.calls_per_minute, own.calls_per_day or self._spec.calls_per_day

    def _retry_after(self, frees_at_s: float, wall_s: float) -> Headers:
        if not self._spec.retry_after:
            return []
        return [(b"retry-after", b"%d" % max(1, int(-(-(frees_at_s - wall_s) // 1))))]


class ErrorBudget:
    """So many client errors an hour block an endpoint for an hour; each further block lasts twice as long."""

    def __init__(self, per_hour: int) -> None:
        """Start clean; 0 never blocks."""
        self._per_hour = per_hour
        self._counts: dict[tuple[int, str], tuple[int, int]] = {}
        self._blocks: dict[tuple[int, str], tuple[float, int]] = {}

    def dump(self) -> list[Any]:
        """Return what was counted."""
        return [[(*key, *value) for key, value in table.items()] for table in (self._counts, self._blocks)]

    def load(self, kept: list[Any]) -> None:
        """Go on from what was counted."""
        counts, blocks = kept
        self._counts = {(company, endpoint): (hour, errors) for company, endpoint, hour, errors in counts}
        self._blocks = {(company, endpoint): (until_s, number) for company, endpoint, until_s, number in blocks}

    def blocked_until_s(self, company: int, endpoint: str, wall_s: float) -> float:
        """Return when the block ends, 0 where there is none."""
        if not self._blocks:
            return 0.0
        until_s, _ = self._blocks.get((company, endpoint), (0.0, 0))
        return until_s if wall_s < until_s else 0.0

    def answered(self, company: int, endpoint: str, *, status: int, wall_s: float) -> None:
        """Count an error."""
        if not self._per_hour or status not in _ERRORS:
            return
        key = (company, endpoint)
        hour, errors = self._counts.get(key, (0, 0))
        now_hour = int(wall_s // HOUR_S)
        errors = errors + 1 if hour == now_hour else 1
        if errors >= self._per_hour:
            _, blocks = self._blocks.get(key, (0.0, 0))
            self._blocks[key] = (wall_s + HOUR_S * 2**blocks, blocks + 1)
            errors = 0
        self._counts[key] = (now_hour, errors)


def _headers(prefix: bytes, limit: int, remaining: int, reset_s: float) -> Headers:
    return [
        (prefix + b"-limit", b"%d" % limit),
        (prefix + b"-remaining", b"%d" % max(remaining, 0)),
        (prefix + b"-reset", b"%d" % int(reset_s * 1000)),
    ]
