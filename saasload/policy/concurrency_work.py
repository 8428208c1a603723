"""How much work a call is: what makes round trips of different forms, sizes and companies comparable."""

import math
from dataclasses import dataclass

from saasload.model import Company

PRIOR_CALL_ROWS = 2.0
"""A call costs as much as this many rows until more is known; measured services lie between 1 and 20."""

PRIOR_SHARE = 0.25
"""What that guess weighs, in calls that are off the reference size by as much as it is long."""

KNOWN = 3
"""Replies of a new form or size that only teach, before such calls count."""

MEMORY = 0.95
"""Share of what earlier replies taught that remains after each."""

COMPANY_VARIANCE = 0.25
"""How far companies lie apart, as a variance of logs: half as slow or twice as fast is nothing special."""

LONGEST_LOG = 1.4
"""No single reply teaches more than a factor of four."""


@dataclass(slots=True)
class _Form:
    """One form's cost, `1 + share * (rows - reference)`: an affine cost, pinned where the first call was.

    Pinned, it never drifts: what was heard before stays comparable with what is heard after.
    """

    reference: int
    above: float
    below: float
    share: float
    scale: float = 0.0
    heard: int = 0

    def log(self, rows: int) -> float:
        return self.scale + math.log(max(1 + self.share * (rows - self.reference), 0.02))

    def learn(self, rows: int, measured: float) -> None:
        """Hear a call's cost in calls of the reference size: a regression through that point."""
        off = rows - self.reference
        if off:
            self.above = self.above * MEMORY + off * (measured - 1)
            self.below = self.below * MEMORY + off * off
            self.share = min(max(self.above / self.below, 0.0), 1 / self.reference)


@dataclass(slots=True)
class _Factor:
    weight: float = 0.0
    total: float = 0.0
    log: float = 0.0


class Work:
    """What calls cost, in logs: by form an affine function of the rows, by company a factor."""

    def __init__(self) -> None:
        """Take all companies as alike."""
        self._forms: dict[str, _Form] = {}
        self._companies: dict[Company, _Factor] = {}
        self._typical = 1.0
        self._heard: dict[tuple[str, int], int] = {}

    def log(self, company: Company, form: str, rows: int) -> float:
        """Return the log of a call's work; the first form's first size is the unit."""
        held = self._forms.get(form)
        if held is None:
            reference = max(1, rows)
            share = 1 / (reference + PRIOR_CALL_ROWS)
            below = PRIOR_SHARE * reference * reference
            held = self._forms[form] = _Form(reference, share * below, below, share)
            if len(self._forms) == 1:
                held.heard = KNOWN
                self._heard[form, reference.bit_length()] = KNOWN
        factor = self._companies.get(company)
        return held.log(rows) + (factor.log if factor else 0.0)

    def typical(self, work: float) -> float:
        """Return the mean work of the latest calls, this one included."""
        self._typical += (work - self._typical) * (1 - MEMORY)
        return self._typical

    def known(self, form: str, rows: int) -> bool:
        """Say whether calls like this one were heard before, and count this one."""
        key = form, rows.bit_length()
        times = self._heard.get(key, 0)
        self._heard[key] = times + 1
        return times >= KNOWN

    def learn(self, form: str, rows: int, surplus: float) -> None:
        """Hear how much longer than expected a call took, in logs, when all others took what was expected."""
        surplus = min(max(surplus, -LONGEST_LOG), LONGEST_LOG)
        held = self._forms[form]
        if held.heard < KNOWN:
            held.heard += 1
            held.scale += surplus / held.heard
            return
        held.learn(rows, math.exp(held.log(rows) - held.scale + surplus))

    def learn_company(self, company: Company, surplus: float, variance: float) -> None:
        """Hear how much longer than others a company took; shrunk to 0 where jitter explains it as well."""
        surplus = min(max(surplus, -LONGEST_LOG), LONGEST_LOG)
        held = self._companies.get(company)
        if held is None:
            held = self._companies[company] = _Factor()
        held.weight = held.weight * MEMORY + 1
        held.total = held.total * MEMORY + surplus + held.log
        held.log = held.total / (held.weight + variance / COMPANY_VARIANCE)
