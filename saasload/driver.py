"""Lanes: the only room with tasks, and the only one that waits.

A worker is not tied to a company. Each takes the lane that the schedule names, sends that lane's next call,
settles it, and asks again; so `parallel` workers are also the bound on calls on the wire, and one that waits
for a limit or a back-off holds no place there.
"""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import anyio

from saasload.answers import message_of
from saasload.budget import SharedBudget, Ticket, Wait
from saasload.clock import Clock
from saasload.errors import DecodeError, RunFolderError, TransportError
from saasload.lane import Lane, Quiet
from saasload.model import Call, Company, Note, Outcomes, Reply, Request, RowStatus, Trip
from saasload.policy.headers import HeaderSpec, read_limits
from saasload.policy.parallelism import Parallelism, reply_kind
from saasload.policy.retry import GiveUp, after_not_sent, after_refusal, retry_after
from saasload.policy.schedule import Schedule
from saasload.policy.window import NEVER
from saasload.profile import Answers, RetrySpec
from saasload.verdict import (
    Again,
    CloseCompany,
    Drop,
    Settle,
    Split,
    StopRun,
    Verdict,
    in_doubt,
    on_failure,
    on_late,
    on_question,
    on_reply,
)
from saasload.wire import WireFormat
from saasload.wire.cut import shrink, split
from saasload.wire.lookup import LookUp

_COUNTED_ERRORS = frozenset({400, 401, 403, 404})
"""Replies that platforms with an error limit count as errors."""

Send = Callable[[Request], Awaitable[Reply]]


class Recorder(Protocol):
    """Who keeps what the driver learns."""

    def refused_here(self, company: Company, outcomes: Outcomes) -> None:
        """Keep the outcomes of rows that were not sent since they cannot be."""

    async def sending(self, call: Call, at: float) -> int:
        """Make durable that a call is about to leave, at a time of the clock; return its number."""
        ...

    def settled(self, number: int, trip: Trip, outcomes: Outcomes | None) -> None:
        """Keep what came of a call; None where nothing of it was executed."""

    async def flush(self) -> None:
        """Make all that was kept durable."""

    def closed(self, company: Company | None, note: Note) -> None:
        """Keep why a company's rest stays unsent; None stands for all companies."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a driver is told once. `max_rejected` is how many rows may be rejected before the run stops."""

    parallelism: Parallelism
    per_company: int
    deadline_s: float
    max_wait_s: float
    max_rejected: float
    retry: RetrySpec
    answers: Answers


@dataclass(frozen=True, slots=True)
class Outside:
    """Where the driver meets the world: the wire, the time, the records, and chance."""

    send: Send
    clock: Clock
    recorder: Recorder
    budget: SharedBudget
    headers: HeaderSpec
    rng: random.Random


@dataclass(frozen=True, slots=True)
class Language:
    """How calls are written and read: the format rows travel in, and the way to ask for them."""

    wire: WireFormat
    look_up: LookUp | None


class Driver:
    """Sends every lane's calls, and records an outcome for each row that was sent."""

    def __init__(
        self, lanes: Sequence[Lane], schedule: Schedule, language: Language, terms: Terms, outside: Outside
    ) -> None:
        """Take the lanes and all that is needed to settle them."""
        self._lanes = {lane.company: lane for lane in lanes}
        self._schedule = schedule
        self._parallelism = terms.parallelism
        self._wire = language.wire
        self._look_up = language.look_up
        self._terms = terms
        self._send = outside.send
        self._clock = outside.clock
        self._recorder = outside.recorder
        self._budget = outside.budget
        self._headers = outside.headers
        self._held: dict[Company, Wait] = {}
        self._rng = outside.rng
        self._idle: list[anyio.Event] = []
        self._watcher: anyio.Event | None = None
        self._watched_until = NEVER
        self._stopped = False
        self.stop_reason = ""
        self.in_flight = 0
        self.retries = 0
        self.refused = 0
        self.rejected = 0

    async def run(self) -> None:
        """Send until nothing is left to send, or `stop` was called."""
        async with anyio.create_task_group() as tasks:
            for _ in range(min(self._parallelism.ceiling, len(self._lanes) * self._terms.per_company)):
                tasks.start_soon(self._work)

    def stop(self, reason: str, note: Note) -> None:
        """Admit no further call; those on the wire come to their end."""
        if not self._stopped:
            self._stopped = True
            self.stop_reason = reason
            self._recorder.closed(None, note)
        self._wake_all()

    def waits(self) -> list[tuple[float, Company, str]]:
        """Say which companies wait, for how many seconds of target time, and for which limit; soonest first."""
        now, held = self._clock.now(), self._held
        return [
            (until - now, company, held[company].rule if company in held else "")
            for until, company in self._schedule.waits()
        ]

    # Who does what: a worker finds a call and settles it, or rests until there is something to do.

    async def _work(self) -> None:
        schedule = self._schedule
        while not self._stopped:
            now = self._clock.now()
            if self.in_flight >= self.room:
                await self._rest(timed=False)
                continue
            company = schedule.take(now)
            if company is None:
                if not self.in_flight and self._nothing_more(now):
                    self._wake_all()
                    return
                await self._rest(timed=True)
                continue
            call = self._next_call(company, now)
            if call is None:
                continue
            if self._idle and (schedule.ready or schedule.next_at() < self._watched_until):
                self._wake_one()
            self.in_flight += 1
            try:
                right = await self._admitted(company, call)
                if right is not None:
                    await self._settle(call, right)
            finally:
                self.in_flight -= 1
            self._look_around()

    @property
    def room(self) -> int:
        """How many calls may be on the wire now."""
        return self._parallelism.limit_for(self._schedule.total, self._schedule.longest())

    async def _admitted(self, company: Company, call: Call) -> Ticket | None:
        """Ask the budget for a call; without its leave the lane waits as long as it says."""
        form = "look-up" if call.question else self._wire.name
        wall = self._clock.wall()
        got = await self._budget.reserve(company, wall, endpoint=form, rows=len(call.rows))
        if isinstance(got, Ticket):
            self._held.pop(company, None)
            return got
        self._held[company] = got
        self._lanes[company].put_back([call])
        self._schedule.give_back(company)
        self._schedule.hold(company, self._clock.now() + max(got.until - wall, 0.001))
        return None

    def _next_call(self, company: Company, now: float) -> Call | None:
        lane = self._lanes[company]
        while isinstance(item := lane.next(now), Outcomes):
            self._recorder.refused_here(company, item)
            self._schedule.skipped(company, len(item))
            self._count_rejected(item)
        if isinstance(item, Call) and not self._stopped:
            return item
        if isinstance(item, Call):
            lane.put_back([item])
        self._schedule.give_back(company)
        if isinstance(item, Quiet):
            self._schedule.hold(company, item.until)
        elif not self._schedule.in_flight(company):
            self._schedule.close(company)
            self._budget.release(company)
        return None

    async def _rest(self, *, timed: bool) -> None:
        """Sleep until something changes; one of the sleepers also watches the time, if there is room to use it."""
        event = anyio.Event()
        until = self._schedule.next_at() if timed else NEVER
        if until >= self._watched_until:
            self._idle.append(event)
            await self._flush()
            await event.wait()
            return
        if self._watcher is not None:
            self._idle.append(self._watcher)
        self._watcher, self._watched_until = event, until
        await self._flush()
        with self._clock.deadline(max(0.0, until - self._clock.now())):
            await event.wait()
        # A sleeper that woke by itself must not be found asleep: the wake meant for another would be lost on it.
        if self._watcher is event:
            self._dismiss_watcher()
        elif event in self._idle:
            self._idle.remove(event)

    async def _flush(self) -> None:
        """Make durable what is kept; where that fails nothing more is sent, and calls on the wire come to their end."""
        try:
            await self._recorder.flush()
        except RunFolderError as error:
            self.stop(str(error), Note("journal", str(error)))

    def _dismiss_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.set()
        self._watcher, self._watched_until = None, NEVER

    def _wake_all(self) -> None:
        for event in self._idle:
            event.set()
        self._idle.clear()
        self._dismiss_watcher()

    def _wake_one(self) -> None:
        """Let one sleeper look again, the one that watches the time if there is no other."""
        if self._idle:
            self._idle.pop().set()
        else:
            self._dismiss_watcher()

    def _nothing_more(self, now: float) -> bool:
        """Tell whether the load is over, with nothing on the wire: all sent, or what is left waits too long."""
        waits = self._schedule.waits()
        if not waits:
            return True
        wall = self._clock.wall()
        wait_s, company = min(
            (max(until - now, self._held[company].free_at - wall if company in self._held else 0.0), company)
            for until, company in waits
        )
        if wait_s > self._terms.max_wait_s:
            which = f" ({self._held[company].rule} limit)" if company in self._held else ""
            note = Note("limit", f"company {company} may send again in {wait_s:,.0f} s{which}")
            self.stop(f"{note.message}, longer than the {self._terms.max_wait_s:,.0f} s this run waits", note)
        return self._stopped

    def _look_around(self) -> None:
        """Wake a sleeper where this worker alone cannot serve all that may leave now or soon."""
        # One of the ready lanes is for this worker, and so is one place.
        more = min(self._schedule.ready, self.room - self.in_flight) - 1
        if more > 0 or self._schedule.next_at() < self._watched_until:
            self._wake_one()
        for _ in range(min(more - 1, len(self._idle))):
            self._wake_one()

    # One call, from the record that it leaves to the record of what came of it.

    async def _settle(self, call: Call, right: Ticket) -> None:
        started = self._clock.now()
        try:
            number = await self._recorder.sending(call, started)
        except RunFolderError as error:
            self.stop(str(error), Note("journal", str(error)))
            self._lanes[call.company].put_back([call])
            self._schedule.settled(call.company, started, 0)
            self._budget.settled(right, self._clock.wall(), left=False)
            return
        ticket = self._parallelism.sent(call.company, self._clock.now())
        try:
            verdict, reply, words = await self._send_one(call)
        except anyio.get_cancelled_exc_class():
            lost = Note("interrupted", "stopped while the call was on the wire")
            if not call.question:
                self._conclude(number, call, in_doubt(call, lost), (started, 0, lost.message))
            self._budget.settled(right, self._clock.wall())
            raise
        status = 0 if reply is None else reply.status
        verdict = self._charge(right, verdict, reply)
        kind = reply_kind(status, self._terms.answers.not_executed)
        form = "look-up" if call.question else self._wire.name
        self._parallelism.settled(ticket, self._clock.now(), rows=len(call.rows), form=form, reply=kind)
        settled = self._conclude(number, call, verdict, (started, status, words))
        self._schedule.settled(call.company, self._clock.now(), settled)

    def _charge(self, right: Ticket, verdict: Verdict, reply: Reply | None) -> Verdict:
        """Tell the budget what became of a call, and take the wait that its reply's headers ask for."""
        wall = self._clock.wall()
        if reply is None:
            self._budget.settled(right, wall, left=not (isinstance(verdict, Again) and not verdict.sent))
            return verdict
        facts = read_limits(reply.headers, self._headers, wall)
        self._budget.settled(right, wall, facts, failed=reply.status in _COUNTED_ERRORS)
        if isinstance(verdict, Again) and reply.status in self._terms.answers.not_executed:
            wait_s = facts.wait_s()
            self._budget.refused(right, wall, wait_s or 0.0, facts)
            if wait_s is not None:
                return replace(verdict, wait_s=wait_s)
        return verdict

    async def _send_one(self, call: Call) -> tuple[Verdict, Reply | None, str]:
        reply: Reply | None = None
        try:
            request = self._request(call)
            with self._clock.deadline(self._terms.deadline_s):
                reply = await self._send(request)
        except TransportError as error:
            return on_failure(call, error), None, str(error)
        if reply is None:
            late = Note("deadline", f"no answer within {self._terms.deadline_s:g} s")
            return on_late(call, late), None, late.message
        words = "" if 200 <= reply.status < 300 else message_of(reply.body)
        return self._judge(call, reply), reply, words

    def _request(self, call: Call) -> Request:
        if call.question and self._look_up is not None:
            return self._look_up.request(call.company, call.fragments.keys)
        return self._wire.request(call)

    def _judge(self, call: Call, reply: Reply) -> Verdict:
        if not call.question:
            return on_reply(call, reply, self._wire, self._terms.answers)
        if not 200 <= reply.status < 300:
            return on_question(reply, self._terms.answers)
        try:
            return Settle(self._lanes[call.company].doubts.answered(call, reply))
        except DecodeError as error:
            return Again(Note("unreadable-answer", str(error)), None, sent=True)

    def _conclude(self, number: int, call: Call, verdict: Verdict, how: tuple[float, int, str]) -> int:
        """Record a call and carry its verdict out; return how many rows need nothing more."""
        started, status, words = how
        now = self._clock.now()
        lane = self._lanes[call.company]
        self.refused += isinstance(verdict, Again) and status in self._terms.answers.not_executed
        outcomes = None
        if isinstance(verdict, Settle):
            outcomes = lane.doubts.reconsider(verdict.outcomes)
        if 200 <= status < 300 and not call.question:
            self._schedule.paced(call.company, (now - started) / len(call.rows))
        self._recorder.settled(number, Trip(call, started, now - started, status, words), outcomes)
        if outcomes is not None:
            return self._after(lane, call, outcomes, now)
        self._not_executed(lane, call, verdict, now)
        return 0

    def _after(self, lane: Lane, call: Call, outcomes: Outcomes, now: float) -> int:
        """See to the rows that are not done with: those in doubt, and those the target did not try."""
        done = len(outcomes)
        self._count_rejected(outcomes)
        if RowStatus.IN_DOUBT in outcomes.statuses and not call.question:
            rows = [row for row, status in zip(outcomes.rows, outcomes.statuses, strict=True)
                    if status is RowStatus.IN_DOUBT]  # fmt: skip
            done -= len(lane.doubts.add(rows, now))
        if RowStatus.NOT_ATTEMPTED in outcomes.statuses:
            rest = {row for row, status in zip(outcomes.rows, outcomes.statuses, strict=True)
                    if status is RowStatus.NOT_ATTEMPTED}  # fmt: skip
            done -= len(rest)
            if not call.question:
                note = next((outcomes.notes[row] for row in rest if row in outcomes.notes), Note("not-executed"))
                again = Again(note, outcomes.retry_after, sent=True)
                kept = shrink(call, rest, self._wire.overhead)
                # With some rows settled there is progress, and the count of tries begins anew.
                self._again(lane, replace(kept, attempt=1 if done else call.attempt), again, now)
        return done

    def _not_executed(self, lane: Lane, call: Call, verdict: Verdict, now: float) -> None:
        match verdict:
            case Again():
                self._again(lane, call, verdict, now)
            case Split():
                lane.put_back(split(call, self._wire.overhead))
                self.retries += 1
            case CloseCompany(note):
                self._recorder.closed(call.company, note)
                self._schedule.close(call.company)
            case StopRun(note, reason):
                self.stop(reason, note)
            case Drop() | Settle():
                pass

    def _again(self, lane: Lane, call: Call, again: Again, now: float) -> None:
        """Queue a call that was not executed, and hold its company for as long as that takes."""
        if again.sent:
            wait_s = again.wait_s
            if wait_s is None:
                wait_s = retry_after(again.retry_after, self._clock.wall())
            decision = after_refusal(self._terms.retry, call.attempt, wait_s, self._rng)
        else:
            decision = after_not_sent(self._terms.retry, call.attempt, self._rng)
        if not isinstance(decision, GiveUp):
            self.retries += 1
            lane.put_back([replace(call, attempt=call.attempt + 1)])
            self._schedule.hold(lane.company, now + decision.delay_s)
            return
        if call.question:
            return  # its rows stay in doubt, which is what they are
        message = f"{again.note.message} (after {decision.tries} tries)"
        final = replace(again.note, message=message)
        if again.sent:
            self._recorder.closed(lane.company, final)
            self._schedule.close(lane.company)
        else:
            self.stop(message, final)

    def _count_rejected(self, outcomes: Outcomes) -> None:
        self.rejected += outcomes.statuses.count(RowStatus.REJECTED)
        if self.rejected > self._terms.max_rejected:
            self.stop(f"{self.rejected:,} rows rejected, more than --max-errors allows", Note("max-errors"))
