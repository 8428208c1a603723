"""One call, from the record that it leaves to the record of what came of it, and what follows."""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import anyio

from saasload.answers import message_of
from saasload.budget import SharedBudget, Ticket
from saasload.clock import Clock
from saasload.errors import DecodeError, RunFolderError, TransportError
from saasload.lane import Lane
from saasload.model import Call, Company, Note, Outcomes, Reply, Request, RowStatus, Trip
from saasload.policy.headers import HeaderSpec, read_limits
from saasload.policy.parallelism import Parallelism, reply_kind
from saasload.policy.retry import GiveUp, after_not_sent, after_refusal, retry_after
from saasload.policy.schedule import Schedule
from saasload.profile import Answers, CsrfSpec, RetrySpec
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
    csrf: CsrfSpec | None = None


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


class Exchange:
    """Sends one call at a time for whoever asks, records what came of it, and carries the verdict out.

    `stop` is called with a reason where nothing more can be sent anywhere.
    """

    def __init__(
        self,
        lanes: Mapping[Company, Lane],
        schedule: Schedule,
        language: Language,
        terms: Terms,
        outside: Outside,
        stop: Callable[[str, Note], None],
    ) -> None:
        """Take all that is needed to settle calls."""
        self._lanes = lanes
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
        self._rng = outside.rng
        self._stop = stop
        self.retries = 0
        self.refused = 0
        self.rejected = 0

    async def settle(self, call: Call, right: Ticket) -> None:
        """Send a call that the budget has let through, and see to what comes of it."""
        started = self._clock.now()
        try:
            number = await self._recorder.sending(call, started)
        except RunFolderError as error:
            self._stop(str(error), Note("journal", str(error)))
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
        spent = self._clock.spent()
        self._parallelism.settled(ticket, self._clock.now(), rows=len(call.rows), form=form, reply=kind, spent=spent)
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
            return on_reply(call, reply, self._wire, self._terms.answers, self._terms.csrf)
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
            outcomes = lane.answered(call, verdict.outcomes)
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
        self.count_rejected(outcomes)
        if RowStatus.IN_DOUBT in outcomes.statuses and not call.question:
            rows = [row for row, status in zip(outcomes.rows, outcomes.statuses, strict=True)
                    if status is RowStatus.IN_DOUBT]  # fmt: skip
            done -= len(lane.lost(rows, now))
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
                self._stop(reason, note)
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
            self._stop(message, final)

    def count_rejected(self, outcomes: Outcomes) -> None:
        """Count rows that were refused, here or there; too many stop the run."""
        self.rejected += outcomes.statuses.count(RowStatus.REJECTED)
        if self.rejected > self._terms.max_rejected:
            self._stop(f"{self.rejected:,} rows rejected, more than --max-errors allows", Note("max-errors"))
