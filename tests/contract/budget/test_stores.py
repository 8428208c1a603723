"""What holds for a budget in memory, in SQLite and in Redis alike."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from saasload.budget import SharedBudget, Store, Ticket, Wait
from saasload.budget.shared import Terms
from saasload.model import Company
from saasload.policy.headers import LimitFacts, WindowFact
from saasload.policy.ledger_windows import Rule

Open = Callable[[], Awaitable[Store]]

NOON = 1_767_614_400.0
SLIDING = Rule("minute", "company", "sliding", 20, 60.0)
FIXED = Rule("minute", "company", "fixed", 20, 60.0)
APP = Rule("app", "app", "sliding", 5, 60.0)
ERRORS = Rule("errors", "endpoint", "errors", 4, 3600.0)
ONE = Company("118")


Join = Callable[..., Awaitable[SharedBudget]]


def run(opened: Open, test: Callable[[Join], Awaitable[None]]) -> None:
    """Run a test on an event loop; it gets a function by which one more process joins the shared budget."""
    joined: list[SharedBudget] = []

    async def join(name: str, *rules: Rule) -> SharedBudget:
        budget = SharedBudget(rules, await opened(), Terms(name, 10.0), rng=random.Random(1), say=print)
        joined.append(budget)
        return budget

    async def all_of_it() -> None:
        try:
            await test(join)
        finally:
            for budget in joined:
                await budget.aclose()

    asyncio.run(all_of_it())


async def take(budget: SharedBudget, wall: float, company: Company = ONE, **more: Any) -> list[Ticket]:
    """Take all that may leave now."""
    tickets = []
    while isinstance(got := await budget.reserve(company, wall, **more), Ticket):
        tickets.append(got)
    return tickets


def about(when: float) -> Any:
    """Expect a time; Redis's clock differs from ours by a little."""
    return pytest.approx(when, rel=0, abs=0.01)


def test_two_processes_share_one_limit(opened: Open) -> None:
    """What one has taken the other has not; what one holds unspent comes back when it leaves."""

    async def test(join: Join) -> None:
        one, other = await join("one", SLIDING), await join("other", SLIDING)
        first = await one.reserve(ONE, NOON)
        rest = await take(other, NOON)
        assert isinstance(first, Ticket)
        assert 17 <= len(rest) <= 19
        await one.aclose()
        again = await take(other, NOON + SLIDING.hold_s)
        assert 1 + len(rest) + len(again) <= 20

    run(opened, test)


def test_many_at_once_get_no_more_than_there_is(opened: Open) -> None:
    """Twelve tasks of four processes ask at one instant; exactly the limit gets through."""

    async def test(join: Join) -> None:
        budgets = [await join(f"p{number}", SLIDING) for number in range(4)]
        taken = await asyncio.gather(*(take(budget, NOON) for budget in budgets for _ in range(3)))
        assert sum(len(tickets) for tickets in taken) == 20

    run(opened, test)


def test_a_slot_frees_one_period_after_the_reply_for_everybody(opened: Open) -> None:
    """The other process learns from the books when that is."""

    async def test(join: Join) -> None:
        one, other = await join("one", APP), await join("other", APP)
        tickets = await take(one, NOON)
        for ticket in tickets:
            one.settled(ticket, NOON + 1.5)
        await take(one, NOON + 2)  # the settling travels with the next question
        wait = await other.reserve(ONE, NOON + 3)
        assert isinstance(wait, Wait)
        assert (wait.free_at, wait.rule) == (about(NOON + 61.5), "app")
        assert len(await take(other, NOON + 61.6)) == 5

    run(opened, test)


def test_a_window_on_the_clock_opens_for_all_but_not_at_one_instant(opened: Open) -> None:
    """Both wait for the platform's next minute, each with its own small delay."""

    async def test(join: Join) -> None:
        one = await join("one", FIXED)
        facts = LimitFacts(date_s=NOON)
        one.saw_date(facts, NOON, NOON)
        for ticket in await take(one, NOON):
            one.settled(ticket, NOON + 1)
        waits = [await one.reserve(ONE, NOON + 10 + second) for second in range(3)]
        assert all(isinstance(wait, Wait) and wait.free_at <= wait.until <= NOON + 61.3 for wait in waits)
        assert all(isinstance(wait, Wait) and wait.free_at == about(NOON + 60) for wait in waits)
        assert len(await take(one, NOON + 62)) == 20

    run(opened, test)


def test_a_refusal_holds_the_company_in_every_process_and_no_other_company(opened: Open) -> None:
    """Until the wait that the reply asks for is over, none of them sends there."""

    async def test(join: Join) -> None:
        one, other = await join("one", SLIDING), await join("other", SLIDING)
        ticket = await one.reserve(ONE, NOON)
        assert isinstance(ticket, Ticket)
        one.settled(ticket, NOON + 1)
        one.refused(ticket, NOON + 1, 30.0)
        assert isinstance(await one.reserve(ONE, NOON + 2), Wait)
        wait = await other.reserve(ONE, NOON + 2)
        assert isinstance(wait, Wait)
        assert wait.free_at == about(NOON + 31)
        assert isinstance(await other.reserve(Company("119"), NOON + 2), Ticket)
        assert isinstance(await other.reserve(ONE, NOON + 32.3), Ticket)

    run(opened, test)


def test_what_replies_say_of_others_corrects_the_books(opened: Open) -> None:
    """A reply that counts 15 calls where we made one leaves four for all our processes."""

    async def test(join: Join) -> None:
        one, other = await join("one", FIXED), await join("other", FIXED)
        for budget in (one, other):
            budget.saw_date(LimitFacts(date_s=NOON + 10), NOON + 10, NOON + 10)
        ticket = await one.reserve(ONE, NOON + 10)
        assert isinstance(ticket, Ticket)
        fact = WindowFact("minute", limit=20, remaining=4, reset_s=50.0, reset_at_s=NOON + 60)
        one.settled(ticket, NOON + 11, LimitFacts({"minute": fact}, date_s=NOON + 11))
        taken = len(await take(one, NOON + 12)) + len(await take(other, NOON + 12))
        assert taken == 4

    run(opened, test)


def test_a_limit_that_the_platform_states_goes_before_the_profiles(opened: Open) -> None:
    """Here it is lower; the remaining calls alone are no reason to send more."""

    async def test(join: Join) -> None:
        one = await join("one", SLIDING)
        ticket = await one.reserve(ONE, NOON)
        assert isinstance(ticket, Ticket)
        fact = WindowFact("minute", limit=10, remaining=9)
        one.settled(ticket, NOON + 1, LimitFacts({"minute": fact}))
        one.release(ONE)
        assert len(await take(one, NOON + 2)) == 9

    run(opened, test)


def test_a_process_that_dies_gives_its_place_back_in_time(opened: Open) -> None:
    """Its leases run out, and count as spent at the last moment that they could have been."""

    async def test(join: Join) -> None:
        dead, other = await join("dead", APP), await join("other", APP)
        assert len(await take(dead, NOON)) == 5
        expires = NOON + APP.hold_s + 10.0
        assert not await take(other, expires + 0.1)
        assert not await take(other, expires + 59)
        assert len(await take(other, expires + 60.1)) == 5

    run(opened, test)


def test_an_error_budget_stops_one_short_of_the_block(opened: Open) -> None:
    """At four errors an hour the platform blocks: after three nothing leaves there, for any process."""

    async def test(join: Join) -> None:
        one, other = await join("one", ERRORS), await join("other", ERRORS)
        for number in range(5):
            ticket = await one.reserve(ONE, NOON + number, endpoint="crm/Accounts")
            assert isinstance(ticket, Ticket)
            one.settled(ticket, NOON + number + 0.5, failed=number % 2 == 0)
        wait = await one.reserve(ONE, NOON + 10, endpoint="crm/Accounts")
        assert isinstance(wait, Wait)
        assert (wait.free_at, wait.rule) == (about(NOON + 3600.5), "errors")
        assert isinstance(await other.reserve(ONE, NOON + 10, endpoint="crm/Accounts"), Wait)
        assert isinstance(await one.reserve(ONE, NOON + 10, endpoint="crm/$batch"), Ticket)

    run(opened, test)


def test_a_call_that_never_reached_the_target_costs_nothing(opened: Open) -> None:
    """Its place is there for the next."""

    async def test(join: Join) -> None:
        one = await join("one", APP)
        for ticket in await take(one, NOON):
            one.settled(ticket, NOON + 1, left=False)
        assert len(await take(one, NOON + 2)) == 5

    run(opened, test)


def test_a_call_waits_for_all_its_limits_and_takes_from_none_in_the_meantime(opened: Open) -> None:
    """The app's limit holds a company back; what the company may send stays there for the others' calls."""

    async def test(join: Join) -> None:
        one = await join("one", APP, SLIDING)
        assert len(await take(one, NOON)) == 5
        assert isinstance(await one.reserve(Company("119"), NOON), Wait)
        await one.aclose()
        other = await join("other", SLIDING)
        assert len(await take(other, NOON + 1, Company("119"))) == 20

    run(opened, test)
