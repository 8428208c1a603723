"""All limits together."""

import pytest

from saasload.model import Company
from saasload.policy.budget import Budget
from saasload.policy.window import NEVER
from saasload.profile import Limit

A, B = Company("A"), Company("B")


def limit(scope: str, calls: int, period_s: float, kind: str = "sliding") -> Limit:
    """Make a limit."""
    return Limit.model_validate({"scope": scope, "kind": kind, "calls": calls, "period_s": period_s})


def test_without_limits_everything_may_leave_now() -> None:
    """No rule, no wait."""
    budget = Budget([], offset=0.0)
    budget.sending(A, 1.0)
    budget.settled(A, 2.0)

    assert budget.ready_at(A, 3.0) == 3.0


def test_a_company_limit_holds_one_company_only() -> None:
    """Companies have windows of their own."""
    budget = Budget([limit("company", 1, 60.0)], offset=0.0)
    budget.sending(A, 10.0)
    budget.settled(A, 11.0)

    assert budget.ready_at(A, 12.0) == 71.0
    assert budget.ready_at(B, 12.0) == 12.0


def test_an_app_limit_holds_all_companies() -> None:
    """One window for all, also for companies met later."""
    budget = Budget([limit("app", 1, 60.0)], offset=0.0)
    budget.sending(A, 10.0)

    assert budget.ready_at(B, 11.0) == NEVER
    budget.settled(A, 12.0)
    assert budget.ready_at(B, 13.0) == 72.0


@pytest.mark.parametrize("order", [1, -1])
def test_the_tightest_limit_decides(order: int) -> None:
    """Every limit must allow a call, whatever their order."""
    limits = [limit("company", 1, 10.0), limit("app", 1, 60.0), limit("company", 5, 600.0, "fixed")]
    budget = Budget(limits[::order], offset=0.0)
    budget.sending(A, 20.0)
    budget.settled(A, 21.0)

    assert budget.ready_at(A, 22.0) == 81.0


def test_a_day_limit_waits_for_the_platforms_midnight() -> None:
    """The offset turns our clock into theirs."""
    midnight = 86400.0 * 20_000
    budget = Budget([limit("company", 1, 86400.0, "fixed")], offset=midnight - 1000.0)
    budget.sending(A, 1100.0)
    budget.settled(A, 1101.0)

    assert budget.ready_at(A, 1200.0) == pytest.approx(1000.0 + 86400.0 + 2.0)
