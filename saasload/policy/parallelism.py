"""How many calls may be on the wire now: a fixed number, or what the adaptive policy finds."""

import random
from collections.abc import Sequence

from saasload.job import AUTO_CEILING
from saasload.model import Company
from saasload.policy.concurrency import Change, Concurrency, Reply, Ticket, useful

AUTO_START = 10
"""Where nobody gives a hint: the published measurements found 8 to 10 best."""


class Parallelism:
    """Bounds the calls in flight, over all companies and in one.

    A fixed number is what it says. The adaptive limit also looks at what is left: with one company much larger
    than the rest, calls of the others beyond what ends with it only queue at the target and hold the largest up,
    so it gives way, but never to less than half, for the others want to be done too.
    """

    def __init__(self, fixed: int | None, *, per_company: int, hint: int | None, rng: random.Random) -> None:
        """Take a fixed number, or None for an adaptive limit that starts from a hint."""
        self.ceiling = AUTO_CEILING if fixed is None else fixed
        self._fixed = fixed
        self._per_company = per_company
        self._policy = None
        if fixed is None:
            self._policy = Concurrency(hint or AUTO_START, AUTO_CEILING, rng, per_company=per_company)

    @property
    def limit(self) -> int:
        """How many calls may be on the wire by what the target can take."""
        return self.ceiling if self._policy is None else self._policy.limit

    @property
    def found(self) -> int:
        """What the target was found to take: the limit before it was cut for failures that nothing followed."""
        return self.ceiling if self._policy is None else self._policy.found

    def limit_for(self, total: int, longest: int) -> int:
        """Bound it by what is of use for the rows that remain, in all and in the longest company."""
        limit = self.limit
        if self._policy is None:
            return limit
        return min(limit, max(useful(total, longest) * self._per_company, (limit + 1) // 2))

    def company_limit(self, company: Company) -> int:
        """How many calls of one company may be on the wire."""
        return self._per_company if self._policy is None else self._policy.company_limit(company)

    def sent(self, company: Company, now: float) -> Ticket | None:
        """Count a call that leaves; its ticket goes to `settled`."""
        return None if self._policy is None else self._policy.sent(company, now)

    def settled(
        self, ticket: Ticket | None, now: float, *, rows: int, form: str, reply: Reply, spent: float = 0.0
    ) -> None:
        """Count its reply, or that there will be none; `spent` is the work this process has done so far."""
        if self._policy is not None and ticket is not None:
            self._policy.settled(ticket, now, rows=rows, form=form, reply=reply, spent=spent)

    @property
    def changes(self) -> Sequence[Change]:
        """The limits that changed, and why, the latest last."""
        return () if self._policy is None else tuple(self._policy.changes)


def reply_kind(status: int, not_executed: Sequence[int]) -> Reply:
    """See an answer as the policy does; status 0 stands for no answer."""
    if status in not_executed:
        return Reply.REFUSED
    return Reply.FAILED if status == 0 or status >= 501 else Reply.ANSWERED
