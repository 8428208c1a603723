"""Which lane sends next."""

import heapq
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saasload.model import Company
from saasload.policy.budget import Budget
from saasload.policy.schedule import Order, Schedule
from saasload.policy.window import NEVER
from saasload.profile import Limit

limits = st.lists(
    st.builds(
        Limit,
        scope=st.sampled_from(["app", "company"]),
        kind=st.sampled_from(["sliding", "fixed"]),
        calls=st.integers(1, 3),
        period_s=st.sampled_from([1.0, 10.0, 60.0]),
    ),
    max_size=3,
)
lanes = st.lists(st.integers(1, 9), min_size=1, max_size=6)
calls = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 160), st.booleans()), min_size=1, max_size=30)


def one(_company: Company) -> int:
    """Allow each company one call in flight."""
    return 1


@dataclass
class Load:
    """A load as the driver runs it, told the time by its replies."""

    sizes: list[int]
    budget: Budget
    per_company: int
    now: float = 1000.0
    unsent: dict[Company, int] = field(default_factory=dict)
    remaining: dict[Company, int] = field(default_factory=dict)
    flying: Counter[Company] = field(default_factory=Counter)
    held: dict[Company, float] = field(default_factory=dict)
    closed: set[Company] = field(default_factory=set)
    replies: list[tuple[float, int, Company, int, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the lanes."""
        self.unsent = {Company(f"C{number}"): rows for number, rows in enumerate(self.sizes)}
        self.remaining = dict(self.unsent)
        self.schedule = Schedule(dict(self.unsent), self.budget, per_company=lambda _: self.per_company)

    def eligible(self) -> list[Company]:
        """List the lanes that may send now, the longest first."""
        able = [
            company for company in self.unsent
            if company not in self.closed and self.flying[company] < self.per_company
            and self.held.get(company, 0.0) <= self.now and self.budget.ready_at(company, self.now) <= self.now
        ]  # fmt: skip
        return sorted(able, key=lambda company: -self.remaining[company])

    def send(self, made: list[tuple[int, int, bool]], number: int) -> bool:
        """Let one lane send; False where none may."""
        able = self.eligible()
        company = self.schedule.take(self.now)
        assert company == (able[0] if able else None)
        if company is None:
            return False
        rows, latency, refused = made[number % len(made)]
        rows = min(rows, self.unsent[company])
        if not rows:
            self.closed.add(company)
            self.schedule.close(company)
            self.schedule.settled(company, self.now, 0)
            return True
        self.unsent[company] -= rows
        self.flying[company] += 1
        assert self.flying[company] <= self.per_company
        heapq.heappush(self.replies, (self.now + latency / 8, number, company, rows, refused and self.per_company == 1))
        return True

    def hear(self) -> None:
        """Take the next reply; a refused call goes again after a wait."""
        _, _, company, rows, refused = heapq.heappop(self.replies)
        self.flying[company] -= 1
        if refused:
            self.unsent[company] += rows
            self.held[company] = self.now + 2.0
            self.schedule.hold(company, self.held[company])
        else:
            self.remaining[company] -= rows
        self.schedule.settled(company, self.now, 0 if refused else rows)


@given(lanes, limits, st.integers(1, 3), calls)
def test_every_lane_is_served_to_its_end(
    sizes: list[int], rules: list[Limit], per_company: int, made: list[tuple[int, int, bool]]
) -> None:
    """No lane is lost or doubled, none has more calls on the wire than allowed, the longest that may goes first."""
    load = Load(sizes, Budget(rules, offset=0.0), per_company)
    made = [*made, (4, 8, False)]  # at least one call in a round is not refused
    number = 0
    while load.schedule.open or load.replies:
        if load.send(made, number):
            number += 1
            continue
        following = load.replies[0][0] if load.replies else NEVER
        at = min(following, load.schedule.next_at())
        assert at < NEVER, "lanes are open, but nothing will ever happen"
        load.now = max(load.now, at)
        if following <= load.now:
            load.hear()

    assert not any(load.unsent.values())
    assert not any(load.remaining.values())
    assert load.schedule.take(load.now) is None
    assert not load.schedule.waits()


def test_a_lane_that_a_shared_limit_blocks_is_not_forgotten() -> None:
    """Only the reply to another company can free its slot, and then it goes."""
    budget = Budget([Limit(scope="app", calls=1, period_s=10.0)], offset=0.0)
    schedule = Schedule({Company("A"): 2, Company("B"): 1}, budget, per_company=one)

    assert schedule.take(0.0) == "A"
    assert schedule.take(0.0) is None
    assert schedule.next_at() == NEVER
    schedule.settled(Company("A"), 1.0, 2)
    schedule.close(Company("A"))
    assert schedule.take(1.0) is None
    assert schedule.next_at() == 11.0
    assert schedule.waits() == [(11.0, "B")]
    assert schedule.take(11.0) == "B"


def test_lanes_of_one_length_go_in_their_order() -> None:
    """Runs can be repeated."""
    schedule = Schedule({Company("B"): 3, Company("A"): 3, Company("C"): 5}, Budget([], offset=0.0), per_company=one)

    assert [schedule.take(0.0) for _ in range(4)] == ["C", "B", "A", None]


def test_a_hold_never_ends_sooner_than_one_before() -> None:
    """Two answers that ask for a wait: the later end counts."""
    schedule = Schedule({Company("A"): 3}, Budget([], offset=0.0), per_company=one)
    schedule.hold(Company("A"), 20.0)
    schedule.hold(Company("A"), 10.0)

    assert schedule.take(10.0) is None
    assert schedule.next_at() == 20.0
    assert schedule.take(20.0) == "A"


def test_rows_that_need_no_call_shorten_a_lane_at_once() -> None:
    """A lane waits its turn by what is left of it now."""
    schedule = Schedule({Company("A"): 9, Company("B"): 5}, Budget([], offset=0.0), per_company=one)
    schedule.skipped(Company("A"), 8)

    assert [schedule.take(0.0), schedule.take(0.0)] == ["B", "A"]


def test_a_closed_lane_neither_sends_nor_waits() -> None:
    """Whether it was ready or waiting when it closed."""
    schedule = Schedule({Company("A"): 1, Company("B"): 1, Company("C"): 1}, Budget([], offset=0.0), per_company=one)
    schedule.hold(Company("A"), 50.0)
    assert schedule.take(0.0) == "B"
    schedule.close(Company("A"))
    schedule.close(Company("C"))

    assert schedule.open == 1
    assert schedule.take(60.0) is None
    assert schedule.next_at() == NEVER
    assert schedule.waits() == []


def two_at_a_time(company: Company) -> int:
    """Allow company A two calls in flight, others one."""
    return 2 if company == "A" else 1


def test_each_company_has_its_own_bound_on_calls_in_flight() -> None:
    """The bound is asked for each time, so it may be another one for each company."""
    schedule = Schedule({Company("A"): 9, Company("B"): 8}, Budget([], offset=0.0), per_company=two_at_a_time)

    assert [schedule.take(0.0) for _ in range(4)] == ["A", "A", "B", None]
    schedule.settled(Company("A"), 1.0, 1)
    assert [schedule.take(1.0) for _ in range(2)] == ["A", None]


def test_a_bound_that_rises_counts_from_the_next_reply_on() -> None:
    """And one that falls lets the calls on the wire come back first."""
    bound = {"A": 1}
    lanes = {Company("A"): 9}
    schedule = Schedule(lanes, Budget([], offset=0.0), per_company=lambda company: bound[company])
    assert [schedule.take(0.0) for _ in range(2)] == ["A", None]

    bound["A"] = 3
    schedule.settled(Company("A"), 1.0, 1)
    assert [schedule.take(1.0) for _ in range(4)] == ["A", "A", "A", None]
    bound["A"] = 1
    schedule.settled(Company("A"), 2.0, 1)
    schedule.settled(Company("A"), 2.0, 1)
    assert schedule.take(2.0) is None
    schedule.settled(Company("A"), 3.0, 1)
    assert schedule.take(3.0) == "A"


def test_a_slow_company_counts_as_longer() -> None:
    """What remains is work, not rows: half the rows at four times the pace go first."""
    schedule = Schedule({Company("A"): 10, Company("B"): 6}, Budget([], offset=0.0), per_company=one)
    for _ in range(8):
        schedule.paced(Company("A"), 1.0)
        schedule.paced(Company("B"), 4.0)

    assert schedule.take(0.0) == "B"
    assert schedule.take(0.0) == "A"


def test_a_pace_of_nothing_changes_nothing() -> None:
    """A target that answers within a tick of the clock: rows decide."""
    schedule = Schedule({Company("A"): 10, Company("B"): 6}, Budget([], offset=0.0), per_company=one)
    schedule.paced(Company("B"), 0.0)

    assert [schedule.take(0.0), schedule.take(0.0)] == ["A", "B"]


def test_what_is_given_back_is_not_charged_and_asks_again() -> None:
    """A call that never left takes nothing from the limit."""
    budget = Budget([Limit(scope="company", calls=1, period_s=60.0)], offset=0.0)
    schedule = Schedule({Company("A"): 2}, budget, per_company=one)
    assert schedule.take(0.0) == "A"

    schedule.give_back(Company("A"))

    assert schedule.in_flight(Company("A")) == 0
    assert schedule.take(0.0) == "A"
    schedule.settled(Company("A"), 1.0, 1)
    assert schedule.take(1.0) is None
    assert schedule.next_at() == 61.0


def test_a_lane_with_nothing_to_cut_rests_until_its_own_call_is_back() -> None:
    """Several calls may be in flight and the last rows with them: the lane is not named again and again till then."""
    schedule = Schedule({Company("A"): 2}, Budget([], offset=0.0), per_company=two_at_a_time)
    assert [schedule.take(0.0), schedule.take(0.0)] == ["A", "A"]
    schedule.settled(Company("A"), 1.0, 0)
    assert schedule.take(1.0) == "A"
    schedule.give_back(Company("A"))

    assert schedule.take(1.0) is None
    assert schedule.next_at() == NEVER
    schedule.settled(Company("A"), 2.0, 1)
    assert schedule.take(2.0) == "A"


def test_a_hold_wakes_a_lane_that_rests() -> None:
    """A limit let the second call of a company wait until 5, whenever the first comes back."""
    schedule = Schedule({Company("A"): 2}, Budget([], offset=0.0), per_company=two_at_a_time)
    assert [schedule.take(0.0), schedule.take(0.0)] == ["A", "A"]
    schedule.give_back(Company("A"))
    schedule.hold(Company("A"), 5.0)

    assert schedule.take(1.0) is None
    assert schedule.next_at() == 5.0
    assert schedule.take(5.0) == "A"


@pytest.mark.parametrize(("order", "taken"), [("longest", "BBABAB"), ("fifo", "AAABBB"), ("fair", "ABABAB")])
def test_orders(order: Order, taken: str) -> None:
    """The longest first, one after another, or each in turn."""
    schedule = Schedule({Company("A"): 3, Company("B"): 5}, Budget([], offset=0.0), per_company=one, order=order)
    left, seen = {"A": 3, "B": 5}, ""
    for now in range(6):
        company = schedule.take(float(now))
        assert company is not None
        seen += company
        left[company] -= 1
        schedule.settled(company, float(now), 1)
        if not left[company]:
            schedule.close(company)

    assert seen == taken
