"""What reply headers say about limits, in every shape and with every nonsense that has been seen."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.policy.headers import HeaderSpec, LimitFacts, Unit, WindowHeaders, read_limits

NOON = 1_638_447_300
"""2021-12-02 12:15:00 UTC, shortly before a real reply's reset at 12:16."""

MINUTE = WindowHeaders("minute", 60.0, "X-RateLimit-Minutely-Limit", "X-RateLimit-Minutely-Remaining",
                       "X-RateLimit-Minutely-Reset", problem="minute")  # fmt: skip
DAY = WindowHeaders("day", 86_400.0, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", problem="day")
SPEC = HeaderSpec((MINUTE, DAY), problem="X-Rate-Limit-Problem")


def read(headers: dict[str, str], *, date: int | None = NOON, wall_s: float = NOON) -> LimitFacts:
    """Read headers of a reply made at a time."""
    dated = {} if date is None else {"date": formatdate(date, usegmt=True)}
    return read_limits(dated | headers, SPEC, wall_s)


def test_a_reply_with_both_windows_is_read_whole() -> None:
    """The values are from real traffic: resets in epoch milliseconds, one for the minute and one for the day."""
    facts = read({
        "x-ratelimit-limit": "9000", "x-ratelimit-remaining": "8924", "x-ratelimit-reset": "1638489600000",
        "x-ratelimit-minutely-limit": "100", "x-ratelimit-minutely-remaining": "99",
        "x-ratelimit-minutely-reset": "1638447360000",
    })  # fmt: skip

    minute, day = facts.windows["minute"], facts.windows["day"]
    assert (minute.limit, minute.remaining, minute.used, minute.reset_s) == (100, 99, 1, 60.0)
    assert (day.limit, day.used, day.reset_at_s) == (9000, 76, 1_638_489_600.0)
    assert facts.date_s == NOON


def test_a_window_without_headers_has_no_facts() -> None:
    """What is left out is not read as 0 (C04): a refusal for the minute says nothing about the day."""
    facts = read({"x-ratelimit-minutely-remaining": "0", "x-ratelimit-minutely-reset": "1638447360000"})

    assert list(facts.windows) == ["minute"]
    assert [fact.window for fact in facts.exhausted()] == ["minute"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-ratelimit-minutely-remaining": "0", "x-ratelimit-minutely-reset": "0"},
        {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "812", "x-ratelimit-reset": "1638489600000"},
    ],
    ids=["no header", "remaining 0 and reset 0", "the other limit, with room left"],
)
def test_a_refusal_that_says_nothing_usable_leaves_the_wait_to_us(headers: dict[str, str]) -> None:
    """C04: never zero, never negative, never until 1970."""
    assert read(headers).wait_s() is None


@pytest.mark.parametrize("ahead_s", [0, 90, -90], ids=["equal", "server ahead", "server behind"])
def test_a_reset_counts_from_the_replys_own_date(ahead_s: int) -> None:
    """C06: whatever the server's clock shows, the wait is the same 4 s."""
    there = NOON + ahead_s
    reset = {"x-ratelimit-minutely-remaining": "0", "x-ratelimit-minutely-reset": str((there + 4) * 1000)}

    assert read(reset, date=there).wait_s() == 4.0


def test_without_a_date_our_own_clock_stands_in() -> None:
    """It is the best that is left."""
    reset = {"x-ratelimit-minutely-remaining": "0", "x-ratelimit-minutely-reset": str((NOON + 4) * 1000)}

    assert read(reset, date=None, wall_s=NOON + 1.5).wait_s() == 2.5


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("30", "guess"),
        ("30", "seconds"),
        (str(NOON + 30), "guess"),
        (str(NOON + 30), "epoch_s"),
        (str((NOON + 30) * 1000), "guess"),
        (str((NOON + 30) * 1000), "epoch_ms"),
        (formatdate(NOON + 30, usegmt=True), "guess"),
    ],
)
def test_every_unit_is_read_and_can_be_guessed(text: str, unit: Unit) -> None:
    """They are so far apart that only one of them lies within the window."""
    spec = HeaderSpec((WindowHeaders("minute", 60.0, reset="x-reset", unit=unit),))

    fact = read_limits({"date": formatdate(NOON, usegmt=True), "x-reset": text}, spec, 0.0).windows["minute"]

    assert (fact.reset_s, fact.reset_at_s) == (30.0, NOON + 30)


@pytest.mark.parametrize(
    "text",
    ["0", "-5", "", "soon", "nan", "inf", "1e9", "9" * 5000, "3600", str(NOON - 1), str(NOON * 10**6), "٣٠",
     "Fri, 31 Dec 99999 23:59:59 GMT", formatdate(NOON - 60, usegmt=True)],
)  # fmt: skip
def test_a_reset_that_cannot_be_is_not_believed(text: str) -> None:
    """Past, further away than the window is long, or no number at all."""
    fact = read({"x-ratelimit-minutely-limit": "60", "x-ratelimit-minutely-reset": text}).windows["minute"]

    assert fact.limit == 60
    assert fact.reset_s is None


def test_milliseconds_read_as_seconds_are_not_believed_either() -> None:
    """A profile with the wrong unit does no harm: the reset is left out."""
    spec = HeaderSpec((WindowHeaders("minute", 60.0, reset="x-reset", unit="epoch_s"),))
    headers = {"date": formatdate(NOON, usegmt=True), "x-reset": str((NOON + 30) * 1000)}

    assert read_limits(headers, spec, NOON).windows["minute"].reset_s is None


@pytest.mark.parametrize("text", ["0", "-1", "many", "", "1.5", "9" * 40])
def test_a_limit_that_cannot_be_is_not_believed(text: str) -> None:
    """A limit of none at all least of all."""
    assert read({"x-ratelimit-limit": text, "x-ratelimit-remaining": "3"}).windows["day"].limit is None


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": formatdate(NOON + 3, usegmt=True)}, 3.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "86400"}, 86_400.0),
        ({"retry-after": "0.2"}, 1.0),
        ({"retry-after-ms": "20"}, 1.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": formatdate(NOON - 3, usegmt=True)}, None),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, None),
        ({"retry-after": "9" * 5000}, None),
        ({"retry-after-ms": "-20", "retry-after": "2"}, 2.0),
    ],
)
def test_every_shape_of_retry_after(headers: dict[str, str], wait_s: float | None) -> None:
    """C05: honoured where it makes sense, with a floor of a second; nonsense is as good as not there."""
    assert read(headers).wait_s() == wait_s


def test_retry_after_goes_before_resets() -> None:
    """It is what was asked for."""
    reset = {"x-ratelimit-minutely-remaining": "0", "x-ratelimit-minutely-reset": str((NOON + 40) * 1000)}

    assert read({"retry-after": "7"} | reset).wait_s() == 7.0


def test_a_refusal_waits_for_the_longest_of_the_exhausted_windows() -> None:
    """With both used up the day decides."""
    headers = {
        "x-ratelimit-minutely-remaining": "0", "x-ratelimit-minutely-reset": str((NOON + 40) * 1000),
        "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1638489600000",
    }  # fmt: skip

    assert read(headers).wait_s() == 1_638_489_600 - NOON


@pytest.mark.parametrize(("problem", "windows"), [("day", ["day"]), ("Minute", ["minute"]), ("appminute", [])])
def test_a_problem_header_names_the_limit_that_was_hit(problem: str, windows: list[str]) -> None:
    """C08: a refusal for the day parks, one for the minute delays; a name unknown to the profile says nothing."""
    facts = read({"x-rate-limit-problem": problem, "retry-after": "40000"})

    assert [fact.window for fact in facts.exhausted()] == windows
    assert facts.wait_s() == 40_000.0


@pytest.mark.parametrize(
    "headers",
    [
        {"ratelimit": '"default";r=50;t=30', "ratelimit-policy": '"default";q=100;w=60'},
        {"ratelimit": "default;r=50; t=30", "ratelimit-policy": "default; q=100;w=60"},
        {"ratelimit": "limit=100, remaining=50, reset=30", "ratelimit-policy": "100;w=60"},
        {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "50", "ratelimit-reset": "30"},
        {
            "ratelimit-limit": "100",
            "ratelimit-remaining": "50",
            "ratelimit-reset": "30",
            "ratelimit-policy": "100;w=60",
        },
    ],
    ids=["draft 08", "draft 08, tokens", "draft 07", "draft 03", "draft 06"],
)
def test_the_ietfs_fields_are_read_in_all_their_drafts(headers: dict[str, str]) -> None:
    """A window is known by its length, whatever the platform calls it."""
    fact = read(headers).windows["minute"]

    assert (fact.limit, fact.remaining, fact.reset_s) == (100, 50, 30.0)


def test_several_ietf_windows_are_told_apart() -> None:
    """One field carries them all; a window that the profile does not know keeps its own name."""
    facts = read({
        "ratelimit": '"burst";r=5;t=9, "daily";r=0;t=3000, "hour";r=70;t=20',
        "ratelimit-policy": '"burst";q=100;w=60, "daily";q=5000;w=86400, "hour";q=900;w=3600',
    })  # fmt: skip

    assert {name: fact.remaining for name, fact in facts.windows.items()} == {"minute": 5, "day": 0, "hour": 70}
    assert facts.wait_s() == 3000.0


names = st.sampled_from([
    "date", "retry-after", "retry-after-ms", "ratelimit", "ratelimit-policy", "ratelimit-limit", "ratelimit-remaining",
    "ratelimit-reset", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-rate-limit-problem",
    "x-ratelimit-minutely-reset", "x-ratelimit-minutely-remaining",
])  # fmt: skip
pieces = st.sampled_from([
    "0", "1", "30", "-", ".", ",", ";", "=", '"', "r", "q", "w=60", "t=5", " ", "limit", "remaining", str(NOON),
    str(NOON * 1000), "GMT", "9" * 30, "Thu, 02 Dec 2021 12:15:30 GMT",
])  # fmt: skip
values = st.one_of(st.text(max_size=40), st.lists(pieces, max_size=12).map("".join))


@given(st.dictionaries(names, values), st.floats(-1e10, 1e12))
def test_nothing_raises_and_no_wait_is_below_the_floor_or_beyond_a_year(headers: dict[str, str], wall_s: float) -> None:
    """Whatever a reply says."""
    facts = read_limits(headers, SPEC, wall_s)

    wait_s = facts.wait_s()
    assert wait_s is None or 1.0 <= wait_s < 366 * 86_400
    for fact in facts.windows.values():
        assert fact.reset_s is None or 0.0 < fact.reset_s <= 32 * 86_400 + 2
        assert fact.limit is None or fact.limit >= 1
        assert fact.remaining is None or fact.remaining >= 0
