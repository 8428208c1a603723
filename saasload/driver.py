"""Lanes: the only room with tasks, and the only one that waits.

A worker is not tied to a company. Each takes the lane that the schedule names, sends that lane's next call,
settles it, and asks again; so `parallel` workers are also the bound on calls on the wire, and one that waits
for a limit or a back-off holds no place there.
"""

import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from saasload.answers import message_of
from saasload.clock import Clock
from saasload.errors import TransportError
from saasload.model import Call, Company, Note, Outcomes, Reply, Request, RowStatus, Trip
from saasload.policy.retry import GiveUp, after_not_sent, after_refusal, retry_after
from saasload.policy.schedule import Schedule
from saasload.policy.window import NEVER
from saasload.profile import Answers, RetrySpec
from saasload.verdict import (
    Again,
    CloseCompany,
    Settle,
    Split,
    StopRun,
    Verdict,
    in_doubt,
    on_failure,
    on_reply,
)
from saasload.wire import WireFormat
from saasload.wire.cut import shrink, split

Send = Callable[[Request], Awaitable[Reply]]


class Recorder(Protocol):
    """Who keeps what the driver learns."""

    def refused_here(self, company: Company, outcomes: Outcomes) -> None:
        """Keep the outcomes of rows that were not sent since they cannot be."""

    def sending(self, call: Call) -> None:
        """Keep that a call is about to leave."""

    def settled(self, call: Call, outcomes: Outcomes) -> None:
        """Keep the outcomes of rows that need nothing more."""

    def trip(self, trip: Trip) -> None:
        """Keep one request's line."""

    def closed(self, company: Company | None, note: Note) -> None:
        """Keep why a company's rest stays unsent; None stands for all companies."""


@dataclass(slots=True)
class Lane:
    """One company's queue: calls cut as they are needed, and those to be sent again before them."""

    company: Company
    calls: Iterator[Call | Outcomes]
    again: deque[Call] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a driver is told once."""

    parallel: int
    per_company: int
    deadline_s: float
    max_wait_s: float
    retry: RetrySpec
    answers: Answers


class Driver:
    """Sends every lane's calls, and records an outcome for each row that was sent."""

    def __init__(
        self, lanes: list[Lane], schedule: Schedule, wire: WireFormat, terms: Terms, outside: "Outside"
    ) -> None:
        """Take the lanes and all that is needed to settle them."""
        self._lanes = {lane.company: lane for lane in lanes}
        self._schedule = schedule
        self._wire = wire
        self._terms = terms
        self._send = outside.send
        self._clock = outside.clock
        self._recorder = outside.recorder
        self._rng = outside.rng
        self._idle: list[anyio.Event] = []
        self._watcher: anyio.Event | None = None
        self._watched_until = NEVER
        self._stopped = False
        self.stop_reason = ""
        self.in_flight = 0
        self.retries = 0
        self.refused = 0

    async def run(self) -> None:
        """Send until nothing is left to send, or `stop` was called."""
        async with anyio.create_task_group() as tasks:
            for _ in range(min(self._terms.parallel, len(self._lanes) * self._terms.per_company)):
                tasks.start_soon(self._work)

    def stop(self, reason: str, note: Note) -> None:
        """Admit no further call; those on the wire come to their end."""
        if not self._stopped:
            self._stopped = True
            self.stop_reason = reason
            self._recorder.closed(None, note)
        self._wake_all()

    def waits(self) -> list[tuple[float, Company]]:
        """Say which companies wait, and for how many seconds of target time, soonest first."""
        now = self._clock.now()
        return [(until - now, company) for until, company in self._schedule.waits()]

    async def _work(self) -> None:
        schedule = self._schedule
        while not self._stopped:
            now = self._clock.now()
            company = schedule.take(now)
            if company is None:
                if not self.in_flight and self._nothing_more(now):
                    self._wake_all()
                    return
                await self._rest()
                continue
            call = self._next_call(company)
            if call is None:
                schedule.close(company)
                schedule.settled(company, now, 0)
                continue
            if self._idle and (schedule.ready or schedule.next_at() < self._watched_until):
                self._wake_one()
            self.in_flight += 1
            try:
                await self._settle(call)
            finally:
                self.in_flight -= 1

    async def _rest(self) -> None:
        """Sleep until something changes; one of the sleepers also watches the time."""
        event = anyio.Event()
        until = self._schedule.next_at()
        if until >= self._watched_until:
            self._idle.append(event)
            await event.wait()
            return
        if self._watcher is not None:
            self._idle.append(self._watcher)
        self._watcher, self._watched_until = event, until
        with self._clock.deadline(max(0.0, until - self._clock.now())):
            await event.wait()
        # A sleeper that woke by itself must not be found asleep: the wake meant for another would be lost on it.
        if self._watcher is event:
            self._dismiss_watcher()
        elif event in self._idle:
            self._idle.remove(event)

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
        wait_s = self._schedule.next_at() - now
        if NEVER > wait_s > self._terms.max_wait_s:
            company = self._schedule.waits()[0][1]
            note = Note("limit", f"company {company} may send again in {wait_s:,.0f} s")
            self.stop(f"{note.message}, longer than the {self._terms.max_wait_s:,.0f} s this run waits", note)
        return wait_s == NEVER or self._stopped

    def _next_call(self, company: Company) -> Call | None:
        lane = self._lanes[company]
        if lane.again:
            return lane.again.popleft()
        for item in lane.calls:
            if isinstance(item, Call):
                return item
            self._recorder.refused_here(company, item)
            self._schedule.skipped(company, len(item))
        return None

    async def _settle(self, call: Call) -> None:
        started = self._clock.now()
        verdict, status, note = await self._send_one(call, started)
        now = self._clock.now()
        self._recorder.trip(Trip(call, started, now - started, status, note))
        settled = self._apply(call, verdict, now)
        self._schedule.settled(call.company, now, settled)
        self._look_around()

    def _look_around(self) -> None:
        """Wake a sleeper where this worker alone cannot serve all that may leave now or soon."""
        if self._schedule.ready > 1 or self._schedule.next_at() < self._watched_until:
            self._wake_one()

    async def _send_one(self, call: Call, started: float) -> tuple[Verdict, int, str]:
        request = self._wire.request(call)
        self._recorder.sending(call)
        reply: Reply | None = None
        try:
            with self._clock.deadline(self._terms.deadline_s):
                reply = await self._send(request)
        except TransportError as error:
            return on_failure(call, error), 0, str(error)
        except anyio.get_cancelled_exc_class():
            lost = Note("interrupted", "stopped while the call was on the wire")
            self._recorder.trip(Trip(call, started, self._clock.now() - started, 0, lost.message))
            self._apply(call, in_doubt(call, lost), self._clock.now())
            raise
        if reply is None:
            late = Note("deadline", f"no answer within {self._terms.deadline_s:g} s")
            return in_doubt(call, late), 0, late.message
        note = "" if 200 <= reply.status < 300 else message_of(reply.body)
        return on_reply(call, reply, self._wire, self._terms.answers), reply.status, note

    def _apply(self, call: Call, verdict: Verdict, now: float) -> int:
        """Carry a verdict out; return how many rows it settled."""
        lane = self._lanes[call.company]
        match verdict:
            case Settle(outcomes):
                return self._record(lane, call, outcomes, now)
            case Again(note, asked, sent):
                self.refused += sent
                self._again(lane, call, note, asked, now, sent=sent)
            case Split(note):
                if len(call.rows) > 1:
                    lane.again.extendleft(reversed(split(call, self._wire.overhead)))
                self.retries += 1
            case CloseCompany(note):
                self._recorder.closed(call.company, note)
                self._schedule.close(call.company)
            case StopRun(note, reason):
                self.stop(reason, note)
        return 0

    def _record(self, lane: Lane, call: Call, outcomes: Outcomes, now: float) -> int:
        if RowStatus.NOT_ATTEMPTED not in outcomes.statuses:
            self._recorder.settled(call, outcomes)
            return len(outcomes)
        final = [place for place, status in enumerate(outcomes.statuses) if status is not RowStatus.NOT_ATTEMPTED]
        rows = [outcomes.rows[place] for place in final]
        done = Outcomes(
            rows,
            [outcomes.statuses[place] for place in final],
            [outcomes.ids[place] for place in final],
            {row: note for row, note in outcomes.notes.items() if row in set(rows)},
        )
        self._recorder.settled(call, done)
        rest = shrink(call, set(call.rows) - set(rows), self._wire.overhead)
        before = Call(rest.company, rest.fragments, rest.size, call.attempt)
        note = next((outcomes.notes[row] for row in rest.rows if row in outcomes.notes), Note("not-executed"))
        self._again(lane, before, note, outcomes.retry_after, now, sent=True)
        return len(done)

    def _again(self, lane: Lane, call: Call, note: Note, asked: str | None, now: float, *, sent: bool) -> None:
        """Queue a call that was not executed, and hold its company for as long as that takes."""
        if sent:
            wait_s = retry_after(asked, self._clock.wall())
            decision = after_refusal(self._terms.retry, call.attempt, wait_s, self._rng)
        else:
            decision = after_not_sent(self._terms.retry, call.attempt, self._rng)
        if isinstance(decision, GiveUp):
            message = f"{note.message} (after {decision.tries} tries)"
            final = Note(note.reason, message, note.field, note.http_status)
            if sent:
                self._recorder.closed(lane.company, final)
                self._schedule.close(lane.company)
            else:
                self.stop(message, final)
            return
        self.retries += 1
        lane.again.appendleft(Call(call.company, call.fragments, call.size, call.attempt + 1))
        self._schedule.hold(lane.company, now + decision.delay_s)


@dataclass(frozen=True, slots=True)
class Outside:
    """Where the driver meets the world: the wire, the time, the records, and chance."""

    send: Send
    clock: Clock
    recorder: Recorder
    rng: random.Random
