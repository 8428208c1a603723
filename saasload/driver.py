"""Lanes: the only room with tasks, and the only one that waits.

A worker is not tied to a company. Each takes the lane that the schedule names, sends that lane's next call,
settles it, and asks again; so `parallel` workers are also the bound on calls on the wire, and one that waits
for a limit or a back-off holds no place there.
"""

from collections.abc import Mapping, Sequence

import anyio
from anyio.abc import TaskGroup

from saasload.budget import Ticket, Wait
from saasload.errors import RunFolderError
from saasload.exchange import Exchange, Language, Outside, Terms
from saasload.lane import Lane, Quiet
from saasload.model import Call, Company, Note, Outcomes
from saasload.policy.schedule import Schedule
from saasload.policy.window import NEVER


class Driver:
    """Sends every lane's calls, and records an outcome for each row that was sent."""

    def __init__(
        self, lanes: Sequence[Lane], schedule: Schedule, language: Language, terms: Terms, outside: Outside
    ) -> None:
        """Take the lanes and all that is needed to settle them."""
        self._lanes = {lane.company: lane for lane in lanes}
        self._schedule = schedule
        self._parallelism = terms.parallelism
        self._form = language.wire.name
        self._terms = terms
        self._clock = outside.clock
        self._recorder = outside.recorder
        self._budget = outside.budget
        self._held: dict[Company, Wait] = {}
        self._idle: list[anyio.Event] = []
        self._watcher: anyio.Event | None = None
        self._watched_until = NEVER
        self._stopped = False
        self.stop_reason = ""
        self.stop_note: Note | None = None
        self.in_flight = 0
        # Companies that were waiting when no other could go on: until when, on the wall, and for which limit.
        self.parked: Mapping[Company, tuple[float, str]] = {}
        self.exchange = Exchange(self._lanes, schedule, language, terms, outside, self.stop)

    async def run(self) -> None:
        """Send until nothing is left to send, or `stop` was called."""
        async with anyio.create_task_group() as tasks:
            workers = min(self._parallelism.ceiling, len(self._lanes) * self._terms.per_company)
            if workers:
                tasks.start_soon(self._begin, tasks, workers)

    def stop(self, reason: str, note: Note) -> None:
        """Admit no further call; those on the wire come to their end."""
        if not self._stopped:
            self._stopped = True
            self.stop_reason = reason
            self.stop_note = note
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

    async def _begin(self, tasks: TaskGroup, workers: int) -> None:
        """Start one worker after another: the first calls are on their way while the next are being encoded."""
        if workers > 1:
            tasks.start_soon(self._begin, tasks, workers - 1)
        await self._work()

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
                    await self.exchange.settle(call, right)
            finally:
                self.in_flight -= 1
            self._look_around()

    @property
    def room(self) -> int:
        """How many calls may be on the wire now."""
        return self._parallelism.limit_for(self._schedule.total, self._schedule.longest())

    async def _admitted(self, company: Company, call: Call) -> Ticket | None:
        """Ask the budget for a call; without its leave the lane waits as long as it says."""
        form = "look-up" if call.question else self._form
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
            self.exchange.count_rejected(item)
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
        frees = {
            company: max(until - now, self._held[company].free_at - wall if company in self._held else 0.0)
            for until, company in waits
        }
        company = min(frees, key=lambda company: (frees[company], company))
        if frees[company] > self._terms.max_wait_s:
            self.parked = {company: (wall + wait_s, self._rule(company)) for company, wait_s in frees.items()}
            note = Note("limit", f"company {company} may send again in {frees[company]:,.0f} s{self._rule(company)}")
            self.stop(f"{note.message}, longer than the {self._terms.max_wait_s:,.0f} s this run waits", note)
        return self._stopped

    def _rule(self, company: Company) -> str:
        return f" ({self._held[company].rule} limit)" if company in self._held else ""

    def _look_around(self) -> None:
        """Wake a sleeper where this worker alone cannot serve all that may leave now or soon."""
        # One of the ready lanes is for this worker, and so is one place.
        more = min(self._schedule.ready, self.room - self.in_flight) - 1
        if more > 0 or self._schedule.next_at() < self._watched_until:
            self._wake_one()
        for _ in range(min(more - 1, len(self._idle))):
            self._wake_one()
