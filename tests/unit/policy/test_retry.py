"""When a call goes again."""

import random
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.policy.retry import FLOOR_S, GiveUp, SendAgain, after_not_sent, after_refusal, backoff, retry_after
from saasload.profile import RetrySpec

specs = st.builds(
    RetrySpec,
    base_s=st.floats(0.001, 100.0),
    cap_s=st.floats(0.001, 1000.0),
    attempts=st.integers(1, 100_000),
)
chances = st.integers(0, 2**32).map(random.Random)
NOW = datetime(2026, 11, 30, 9, 0, 0, tzinfo=UTC).timestamp()


def http_date(seconds: float) -> str:
    """Write an HTTP date some seconds from now."""
    return format_datetime(datetime.fromtimestamp(NOW + seconds, UTC), usegmt=True)


@given(specs, st.integers(1, 200_000), st.none() | st.floats(0.0, 366 * 86400.0), chances)
def test_a_refused_call_waits_as_asked_and_never_less_than_the_floor(
    spec: RetrySpec, attempt: int, asked: float | None, rng: random.Random
) -> None:
    """What the answer asks for, in full, and at most a little more; else a back-off of a second up to the cap."""
    decision = after_refusal(spec, attempt, asked, rng)

    if attempt >= spec.attempts:
        assert decision == GiveUp(attempt)
        return
    assert isinstance(decision, SendAgain)
    assert decision.delay_s >= FLOOR_S
    if asked is None:
        assert decision.delay_s <= max(FLOOR_S, spec.cap_s)
    else:
        assert asked <= decision.delay_s <= max(FLOOR_S, asked) + min(1.0, 0.1 * asked)


@given(specs, st.integers(1, 200_000), chances)
def test_a_call_that_never_arrived_backs_off_within_its_ceiling(
    spec: RetrySpec, attempt: int, rng: random.Random
) -> None:
    """From nothing to a ceiling that doubles up to the cap, and a last attempt."""
    decision = after_not_sent(spec, attempt, rng)

    if attempt >= spec.attempts:
        assert decision == GiveUp(attempt)
    else:
        assert isinstance(decision, SendAgain)
        assert 0.0 <= decision.delay_s <= spec.cap_s


def test_the_ceiling_doubles_with_each_attempt() -> None:
    """The mean of many draws is half the ceiling: full jitter."""
    spec = RetrySpec(base_s=1.0, cap_s=10.0)
    rng = random.Random(1)

    for attempt, ceiling in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (5000, 10.0)):
        draws = [backoff(spec, attempt, rng) for _ in range(2000)]
        assert max(draws) <= ceiling
        assert sum(draws) / len(draws) == pytest.approx(ceiling / 2, rel=0.1)


def test_chance_is_handed_in() -> None:
    """One seed, one wait."""
    waits = [after_refusal(RetrySpec(), 3, None, random.Random(7)) for _ in range(2)]

    assert waits[0] == waits[1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3", 3.0),
        (" 3 ", 3.0),
        ("2.5", 2.5),
        ("86400", 86400.0),
        (http_date(3), 3.0),
        (http_date(3).replace("GMT", "+0000"), 3.0),
        (http_date(3).replace(" GMT", ""), 3.0),
        ("Monday, 30-Nov-26 09:00:03 GMT", 3.0),
        ("Mon Nov 30 09:00:03 2026", 3.0),
        (None, None),
        ("", None),
        ("0", None),
        ("-5", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("1_0", None),
        ("²", None),
        ("٣", None),
        ("9" * 5000, None),
        ("9" * 12, None),
        (http_date(0), None),
        (http_date(-3600), None),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("Fri, 31 Dec 99999 23:59:59 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None),
        ("Mon, 30 Nov 2026 25:00:00 GMT", None),
    ],
)
def test_every_shape_of_retry_after_is_seconds_or_nonsense(value: str | None, expected: float | None) -> None:
    """Seconds, fractions and all forms of HTTP dates are honoured; the rest is left to our own back-off (C05)."""
    assert retry_after(value, NOW) == expected


@given(st.text(max_size=80) | st.binary(max_size=80).map(lambda raw: raw.decode("latin-1")))
def test_no_retry_after_is_ever_negative_endless_or_fatal(value: str) -> None:
    """Whatever stands there, the wait is positive and ends within a year, or there is none (C04)."""
    seconds = retry_after(value, NOW)

    assert seconds is None or 0.0 < seconds < 366 * 86400.0


@given(
    st.lists(
        st.sampled_from(
            ["Mon", ",", " ", "30", "Nov", "2026", "-", "09:00", ":", ".", "+", "GMT", "(", ")", '"', "[", "\\"]
        )
    )
)
def test_scraps_of_dates_are_nonsense_at_worst(scraps: list[str]) -> None:
    """The standard library's parser is old and forgiving; nothing it raises gets out."""
    seconds = retry_after("".join(scraps), NOW)

    assert seconds is None or 0.0 < seconds < 366 * 86400.0


def test_a_date_without_a_zone_is_not_our_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The zone of this machine changes nothing."""
    for zone in ("Pacific/Auckland", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert retry_after(http_date(3).replace(" GMT", ""), NOW) == 3.0
    monkeypatch.undo()
    time.tzset()
