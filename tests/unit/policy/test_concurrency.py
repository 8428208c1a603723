"""How many calls to have on the wire."""

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.concurrency import Fixed, held
from bench.concurrency_sim import SCENARIOS, Scenario, Simulation
from saasload.model import Company
from saasload.policy.concurrency import Change, Concurrency, Reply, Ticket, useful

CEILING = 32

steps = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from([Reply.ANSWERED, Reply.ANSWERED, Reply.ANSWERED, Reply.REFUSED, Reply.FAILED]),
        st.integers(0, 300),
        st.floats(0.0, 100.0),
    ),
    max_size=300,
)


class Wire:
    """Calls sent as the limits allow, answered in any order."""

    def __init__(self, limit: Concurrency, companies: int = 6) -> None:
        """Start with nothing sent."""
        self.limit = limit
        self.companies = [Company(str(number)) for number in range(companies)]
        self.flying: list[Ticket] = []
        self.now = 1000.0

    def fill(self) -> None:
        """Send all that may leave."""
        own = Counter(ticket.company for ticket in self.flying)
        for company in self.companies:
            for _ in range(own[company], self.limit.company_limit(company)):
                if len(self.flying) < self.limit.limit:
                    self.flying.append(self.limit.sent(company, self.now))

    def back(self, place: int, reply: Reply, rows: int = 25) -> Ticket:
        """Settle one of them."""
        ticket = self.flying.pop(place % len(self.flying))
        self.limit.settled(ticket, self.now, rows=rows, form="batch", reply=reply)
        return ticket


def _play(made: list[tuple[int, Reply, int, float]], *, scale: float = 1.0, seed: int = 1) -> Concurrency:
    limit = Concurrency(10, CEILING, random.Random(seed), per_company=3)
    wire = Wire(limit)
    for place, reply, rows, passes in made:
        wire.fill()
        wire.now += passes * scale
        wire.back(place, reply, rows)
        assert 1 <= limit.limit <= CEILING
        assert all(1 <= limit.company_limit(company) <= 3 for company in wire.companies)
    return limit


def _without_times(changes: list[Change]) -> list[tuple[Company | None, int, int, str]]:
    return [(change.company, change.before, change.after, change.reason) for change in changes]


@given(steps)
def test_limits_stay_in_their_bounds(made: list[tuple[int, Reply, int, float]]) -> None:
    """Whatever comes back, in whatever order and after whatever time."""
    _play(made)


@given(steps)
def test_the_same_replies_give_the_same_limits(made: list[tuple[int, Reply, int, float]]) -> None:
    """Told the time and the chance, it has no other source of either."""
    assert list(_play(made).changes) == list(_play(made).changes)


@pytest.mark.parametrize("scale", [2.0**-12, 2.0**12])
@pytest.mark.parametrize("scenario", ["seeds, batch of 25", "jitter 0.5, batch", "3 x slower half way, batch"])
def test_the_unit_of_time_does_not_matter(scale: float, scenario: str) -> None:
    """A target a thousand times as fast gives the same changes for the same reasons."""

    class Scaled(Concurrency):
        def sent(self, company: Company, now: float) -> Ticket:
            return super().sent(company, now * scale)

        def settled(
            self, ticket: Ticket, now: float, *, rows: int, form: str, reply: Reply, spent: float = 0.0
        ) -> None:
            super().settled(ticket, now * scale, rows=rows, form=form, reply=reply, spent=spent * scale)

    plain, scaled = Concurrency(10, 100, random.Random(3)), Scaled(10, 100, random.Random(3))
    for limit in (plain, scaled):
        Simulation(_named(scenario), limit, 3).run()
    assert _without_times(list(plain.changes)) == _without_times(list(scaled.changes))
    assert len(plain.changes) > 1


@given(steps)
def test_changes_tell_the_whole_story(made: list[tuple[int, Reply, int, float]]) -> None:
    """Each begins where the last of its level ended, and has a reason."""
    changes = list(_play(made).changes)
    for company in {change.company for change in changes}:
        own = [change for change in changes if change.company == company]
        assert own[0].before == (10 if company is None else 1)
        assert all(first.after == second.before for first, second in pairwise(own))
        assert all(change.reason and change.before != change.after for change in own)


@given(steps)
def test_no_two_changes_within_a_round_trip(made: list[tuple[int, Reply, int, float]]) -> None:
    """Between two changes of the target's limit, a call that left after the first is back."""
    limit = Concurrency(10, CEILING, random.Random(1))
    wire = Wire(limit, companies=20)
    changed_at = -1.0
    for place, reply, rows, passes in made:
        wire.fill()
        wire.now += passes + 0.001
        before = limit.limit
        ticket = wire.back(place, reply, rows)
        if limit.limit != before:
            assert ticket.started >= changed_at
            changed_at = wire.now


def _grown(per_company: int) -> Wire:
    """Answer at once and in order, so that nothing seems to queue, until a company may have several calls."""
    wire = Wire(Concurrency(20, CEILING, random.Random(1), per_company=per_company))
    for _ in range(2000):
        wire.fill()
        wire.now += 0.05
        wire.back(0, Reply.ANSWERED)
        if all(wire.limit.company_limit(company) == per_company for company in wire.companies):
            break
    return wire


def test_a_refusal_lowers_that_company_alone() -> None:
    """The others and the target stay where they were."""
    wire = _grown(3)
    wire.fill()
    before = {company: wire.limit.company_limit(company) for company in wire.companies}
    target = wire.limit.limit
    place = next(place for place, ticket in enumerate(wire.flying) if before[ticket.company] > 1)
    refused = wire.back(place, Reply.REFUSED).company
    assert wire.limit.company_limit(refused) < before[refused]
    assert {c: wire.limit.company_limit(c) for c in wire.companies if c != refused} == {
        company: number for company, number in before.items() if company != refused
    }
    assert wire.limit.limit == target


def test_one_company_refused_again_and_again_never_lowers_the_target() -> None:
    """However often: it takes several companies."""
    wire = Wire(Concurrency(4, 4, random.Random(1)))
    for _ in range(200):
        wire.fill()
        wire.now += 1.0
        mine = [place for place, ticket in enumerate(wire.flying) if ticket.company == "0"]
        wire.back(mine[0] if mine else 0, Reply.REFUSED if mine else Reply.ANSWERED)
    assert not [change for change in wire.limit.changes if change.company is None and "refused" in change.reason]


@pytest.mark.parametrize("reply", [Reply.REFUSED, Reply.FAILED])
def test_many_companies_refused_lower_the_target_once_and_it_grows_again(reply: Reply) -> None:
    """One cut a round trip, and later more again."""
    wire = Wire(Concurrency(10, CEILING, random.Random(1)), companies=40)
    wire.fill()
    while wire.flying:
        wire.now += 0.01
        wire.back(0, reply)
    assert len(wire.limit.changes) == 1
    assert wire.limit.limit < 10
    low = wire.limit.limit
    for _ in range(600):
        wire.fill()
        wire.now += 1.0 / len(wire.flying)
        wire.back(0, Reply.ANSWERED)
    assert max(change.after for change in list(wire.limit.changes)[1:]) > low


def _named(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


@pytest.mark.parametrize(
    ("scenario", "best", "loss"),
    [
        ("seeds, batch of 25", 8, 0.05),
        ("seeds, xml of 91", 8, 0.05),
        ("knee 4, batch", 4, 0.05),
        ("knee 24, batch", 24, 0.05),
        ("half the slots half way, batch", 8, 0.05),
        ("3 x slower half way, batch", 8, 0.05),
        ("one slow of ten, batch", 10, 0.05),
        ("jitter 0.5, batch", 8, 0.08),  # the worst of 3 seeds; the median is within 0.05
        ("uneven, batch of 250, no more than useful", 6, 0.05),
    ],
)
def test_close_to_the_best_fixed_number(scenario: str, best: int, loss: float) -> None:
    """Within 5 % of it, and never more than twice the knee in flight after warm-up."""
    made = _named(scenario)
    for seed in range(3):
        fixed = Simulation(made, Fixed(best), seed).run().makespan_s
        result = Simulation(made, Concurrency(10, 100, random.Random(seed)), seed).run()
        assert result.makespan_s <= fixed * (1 + loss)
        assert held(result, made)[1] <= 2.0 + 1 / 8


@pytest.mark.parametrize(
    ("scenario", "seed"),
    [("jitter 0.5, batch", 107), ("jitter 0.5, batch", 128), ("jitter 0.5, xml of 91", 107)],
)
def test_large_jitter_does_not_sink_a_load(scenario: str, seed: int) -> None:
    """Neither by lucky first calls nor by unlucky later ones: these seeds once cost 53, 8 and 156 %."""
    made = _named(scenario)
    fixed = Simulation(made, Fixed(8), seed).run().makespan_s
    assert Simulation(made, Concurrency(10, 100, random.Random(seed)), seed).run().makespan_s <= fixed * 1.05


@pytest.mark.parametrize("scenario", ["answers at once, insert", "answers at once, batch"])
def test_own_work_is_not_taken_for_the_targets(scenario: str) -> None:
    """Where replies wait for the loader's own core, the limit does not sink, and nothing is lost."""
    made = _named(scenario)
    for seed in range(3):
        fixed = Simulation(made, Fixed(16), seed).run().makespan_s
        limit = Concurrency(10, 100, random.Random(seed))
        assert Simulation(made, limit, seed).run().makespan_s <= fixed * 1.03
        assert limit.limit >= 10


def test_a_dead_target_does_not_change_what_was_found() -> None:
    """Calls that fail cut the limit; what the target can take is what was found before."""
    wire = Wire(Concurrency(10, CEILING, random.Random(1)), companies=40)
    for _ in range(400):
        wire.fill()
        wire.now += 1.0
        wire.back(0, Reply.FAILED)

    assert wire.limit.limit <= 3
    assert wire.limit.found == 10


def test_what_was_found_follows_what_is_heard() -> None:
    """A knee that was found is what a report and the next load are told."""
    limit = Concurrency(10, 100, random.Random(1))
    Simulation(_named("knee 4, batch"), limit, 1).run()

    assert limit.found == limit.limit
    assert 4 <= limit.found <= 8


def test_a_company_finds_its_own_knee() -> None:
    """Where a company serves two calls at a time of the four allowed, two or three are sent."""
    limit = Concurrency(10, 100, random.Random(1), per_company=4)
    Simulation(_named("4 calls a company, 2 served"), limit, 1).run()
    found = sorted(limit.company_limit(Company(str(company))) for company in range(6))
    assert 2 <= found[3] <= 3


@pytest.mark.parametrize(
    "rows", [lambda number: 25, lambda number: 250 if number % 3 else 10, lambda number: 1 + number % 250]
)
def test_sizes_of_calls_are_no_news(rows: Callable[[int], int]) -> None:
    """With constant places and an affine cost, mixed sizes give no surprise."""
    limit = Concurrency(8, 8, random.Random(1))
    wire = Wire(limit, companies=8)
    for number in range(400):
        size = rows(number)
        ticket = limit.sent(wire.companies[number % 8], wire.now)
        limit.settled(ticket, wire.now + 2.0 + 0.1 * size, rows=size, form="batch", reply=Reply.ANSWERED)
        wire.now += 1.0
    assert not [change for change in limit.changes if "as long" in change.reason]


def test_no_more_calls_than_can_shorten_a_load() -> None:
    """One company that holds most of it needs few others beside it."""
    assert useful(100, 100) == 2
    assert useful(0, 0) == 1
