"""All limits together: by scope, charged for every call that leaves."""

from collections.abc import Sequence

from saasload.model import Company
from saasload.policy.window import FixedWindow, SlidingWindow, Window
from saasload.profile import Limit


class Budget:
    """Says when a company's next call may leave, and remembers what left.

    `offset` turns `now` into seconds of the platform's wall clock, for windows fixed on it.
    """

    def __init__(self, limits: Sequence[Limit], *, offset: float) -> None:
        """Start with every window empty."""
        self._offset = offset
        self._per_company = [
            limit for limit in limits if limit.scope in {"company", "endpoint"} and limit.kind != "errors"
        ]
        self._app = [
            self._window(limit) for limit in limits if limit.scope in {"app", "user"} and limit.kind != "errors"
        ]
        self._companies: dict[Company, list[Window]] = {}

    def ready_at(self, company: Company, now: float) -> float:
        """Say when a call to the company may leave: `now` if all its windows allow it now."""
        windows = self._windows(company)
        return max((window.ready_at(now) for window in windows), default=now) if windows else now

    def sending(self, company: Company, now: float) -> None:
        """Charge a call that leaves."""
        for window in self._windows(company):
            window.sending(now)

    def refund(self, company: Company) -> None:
        """Take a charge back: the call did not leave."""
        for window in self._windows(company):
            window.refund()

    def settled(self, company: Company, now: float) -> None:
        """Note that its reply is in, or that it has failed."""
        for window in self._windows(company):
            window.settled(now)

    def _windows(self, company: Company) -> list[Window]:
        windows = self._companies.get(company)
        if windows is None:
            own = [self._window(limit) for limit in self._per_company]
            windows = self._companies[company] = self._app + own
        return windows

    def _window(self, limit: Limit) -> Window:
        if limit.kind == "sliding":
            return SlidingWindow(limit.calls, limit.period_s)
        return FixedWindow(limit.calls, limit.period_s, offset=self._offset)
