"""Limits: fixed windows on the clock, the headers, and the block after errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_server.limits import DAY_S, Limits
from mock_server.scenario import CompanySpec, LimitSpec

NOON = 20_000 * DAY_S + 43_200.0


def test_a_normal_reply_has_all_six_headers() -> None:
    """Limits, what is left, and resets in milliseconds since 1970."""
    limits = Limits(LimitSpec(calls_per_minute=60, calls_per_day=5000), {})

    verdict = limits.charge(1001, "crm/Accounts", NOON + 1)

    assert dict(verdict.headers) == {
        b"x-ratelimit-limit": b"5000",
        b"x-ratelimit-remaining": b"4999",
        b"x-ratelimit-reset": b"%d" % ((20_001 * DAY_S) * 1000),
        b"x-ratelimit-minutely-limit": b"60",
        b"x-ratelimit-minutely-remaining": b"59",
        b"x-ratelimit-minutely-reset": b"%d" % ((NOON + 60) * 1000),
    }


def test_a_minute_refuses_with_its_own_headers_only() -> None:
    """The 61st call of a minute is refused; the next minute lets in again."""
    limits = Limits(LimitSpec(calls_per_minute=60), {})
    for _ in range(60):
        assert limits.charge(1001, "x", NOON).allowed

    refused = limits.charge(1001, "x", NOON + 59.9)

    assert not refused.allowed
    assert {name for name, _ in refused.headers} == {
        b"x-ratelimit-minutely-limit",
        b"x-ratelimit-minutely-remaining",
        b"x-ratelimit-minutely-reset",
    }
    assert limits.charge(1001, "x", NOON + 60).allowed


def test_a_day_refuses_with_its_own_headers_only() -> None:
    """The day's limit stands until midnight UTC, and the minute does not appear."""
    limits = Limits(LimitSpec(calls_per_minute=10, calls_per_day=2), {})
    limits.charge(1001, "x", NOON)
    limits.charge(1001, "x", NOON)

    refused = limits.charge(1001, "x", NOON + 3600)

    assert {name for name, _ in refused.headers} == {
        b"x-ratelimit-limit",
        b"x-ratelimit-remaining",
        b"x-ratelimit-reset",
    }
    assert not limits.charge(1001, "x", NOON + 43_199).allowed
    assert limits.charge(1001, "x", NOON + 43_200).allowed


def test_companies_have_windows_of_their_own() -> None:
    """One company's limit is not another's, and an override is its own."""
    limits = Limits(LimitSpec(calls_per_minute=1), {1003: CompanySpec(calls_per_minute=2)})

    allowed = [limits.charge(company, "x", NOON).allowed for company in (1001, 1001, 1002, 1003, 1003, 1003)]

    assert allowed == [True, False, True, True, True, False]


def test_a_refusal_says_when_to_come_back_only_where_the_scenario_wants_it() -> None:
    """Retry-After is a switch."""
    plain, telling = (Limits(LimitSpec(calls_per_minute=1, retry_after=on), {}) for on in (False, True))
    for limits in (plain, telling):
        limits.charge(1001, "x", NOON + 20.5)

    answers = [dict(limits.charge(1001, "x", NOON + 20.5).headers) for limits in (plain, telling)]

    assert b"retry-after" not in answers[0]
    assert answers[1][b"retry-after"] == b"40"


def test_other_processes_share_the_budget() -> None:
    """Calls of others are charged when a minute begins."""
    limits = Limits(LimitSpec(calls_per_minute=60, other_calls_per_minute=50), {})

    verdict = limits.charge(1001, "x", NOON)

    assert dict(verdict.headers)[b"x-ratelimit-minutely-remaining"] == b"9"


def test_errors_block_their_endpoint_for_an_hour_then_two() -> None:
    """Ten client errors in an hour are one too many; the next block lasts twice as long."""
    limits = Limits(LimitSpec(calls_per_minute=1000, errors_per_hour=10), {})
    for _ in range(10):
        assert limits.charge(1001, "crm/Accounts", NOON).allowed
        limits.answered(1001, "crm/Accounts", status=400, wall_s=NOON)

    assert not limits.charge(1001, "crm/Accounts", NOON + 3599).allowed
    assert limits.charge(1001, "crm/$batch", NOON).allowed
    assert limits.charge(1002, "crm/Accounts", NOON).allowed
    assert limits.charge(1001, "crm/Accounts", NOON + 3600).allowed
    for _ in range(10):
        limits.answered(1001, "crm/Accounts", status=404, wall_s=NOON + 3600)
    assert not limits.charge(1001, "crm/Accounts", NOON + 3600 + 7199).allowed


@pytest.mark.parametrize("status", [200, 201, 429, 500, 503])
def test_other_answers_do_not_count_as_errors(status: int) -> None:
    """Only 400, 401, 403 and 404 count."""
    limits = Limits(LimitSpec(calls_per_minute=1000, errors_per_hour=1), {})

    limits.answered(1001, "x", status=status, wall_s=NOON)

    assert limits.charge(1001, "x", NOON).allowed


@given(st.lists(st.floats(0.0, 600.0), max_size=200), st.integers(1, 20))
def test_no_minute_lets_in_more_than_its_limit(arrivals: list[float], cap: int) -> None:
    """Whatever arrives when: each minute of the clock admits at most its limit, and no fewer than it could."""
    limits = Limits(LimitSpec(calls_per_minute=cap), {})
    wanted: dict[int, int] = {}
    admitted: dict[int, int] = {}

    for at_s in sorted(arrivals):
        minute = int((NOON + at_s) // 60)
        wanted[minute] = wanted.get(minute, 0) + 1
        admitted[minute] = admitted.get(minute, 0) + limits.charge(1, "x", NOON + at_s).allowed

    assert admitted == {minute: min(cap, number) for minute, number in wanted.items()}
