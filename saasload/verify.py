"""Prove a run: read the target back by natural key and compare with what was accepted."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import anyio
import orjson

from saasload.budget import SharedBudget, Wait
from saasload.clock import Clock
from saasload.errors import DecodeError, SaasloadError, TargetError, TransportError, UsageError
from saasload.model import Company, Reply, Request, RowStatus
from saasload.policy.retry import GiveUp, after_refusal, retry_after
from saasload.prepare import Prepared
from saasload.rows import SpooledRows
from saasload.source.spool import Spool
from saasload.wire.lookup import Entity, LookUp
from saasload.wire.values import Plain

Send = Callable[[Request], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Proof:
    """Rows that were accepted, and what the target holds of them: each once, or missing, or more than once.

    `different` are there once, with another content; `keyless` cannot be asked for.
    """

    run: str
    expected: int
    once: int
    missing: int
    twice: int
    different: int
    keyless: int
    calls: int

    @property
    def exit_code(self) -> int:
        """0 where each accepted row is there once, as it was sent; 1 where not."""
        return int(self.missing + self.twice + self.different > 0)

    def to_json(self) -> bytes:
        """Write it as one JSON object."""
        return orjson.dumps({**asdict(self), "exit_code": self.exit_code}, option=orjson.OPT_INDENT_2)

    def lines(self) -> list[str]:
        """Put it into words."""
        lines = [
            (
                f"{self.expected:,} rows accepted: {self.once:,} found once, {self.missing:,} missing, "
                f"{self.twice:,} more than once, {self.different:,} with another content"
            ),
            f"read back by natural key in {self.calls:,} calls",
        ]
        if self.keyless:
            lines.append(f"{self.keyless:,} rows have no key to ask for")
        return lines


class Verifier:
    """Asks for the accepted rows of each company, within the limits, one question at a time in a company."""

    def __init__(self, prepared: Prepared, spool: Spool, statuses: bytearray, send: Send, clock: Clock) -> None:
        """Take what was loaded; UsageError where the profile says no way to look rows up."""
        if prepared.look_up is None:
            message = f"profile {prepared.profile.name} has no [look_up] for {prepared.job.entity}: nothing to ask with"
            raise UsageError(message)
        self._look_up: LookUp = prepared.look_up
        self._prepared = prepared
        self._spool = spool
        self._statuses = statuses
        self._send = send
        self._clock = clock
        self._tally: Counter[str] = Counter()
        self._slots = anyio.CapacityLimiter(prepared.job.connections)

    async def prove(self, run: str, budget: SharedBudget) -> Proof:
        """Ask all companies side by side."""
        try:
            async with anyio.create_task_group() as tasks:
                for company, part in self._spool.index.companies.items():
                    if part.rows:
                        tasks.start_soon(self._company, Company(company), budget)
        except BaseExceptionGroup as group:
            first = group.exceptions[0]
            if isinstance(first, SaasloadError):
                raise first from None
            raise
        names = ("expected", "once", "missing", "twice", "different", "keyless", "calls")
        return Proof(run, **{name: self._tally[name] for name in names})

    async def _company(self, company: Company, budget: SharedBudget) -> None:
        rows = SpooledRows(self._prepared, self._spool, company, self._statuses)
        async with self._slots:
            async for keys, sent in self._questions(company, rows):
                found = await self._ask(company, keys, budget)
                for key, values in zip(keys, sent, strict=True):
                    there = found.get(key.strip(), [])
                    if len(there) == 1 and self._look_up.differing(values, there[0]):
                        self._tally["different"] += 1
                    self._tally["once" if len(there) == 1 else "twice" if there else "missing"] += 1

    async def _questions(
        self, company: Company, rows: SpooledRows
    ) -> AsyncIterator[tuple[Sequence[str], Sequence[Mapping[str, Plain]]]]:
        accepted = [row for row in rows.all() if RowStatus.CREATED <= self._statuses[row] <= RowStatus.UNCHANGED]
        self._tally["expected"] += len(accepted)
        while accepted:
            some, accepted = accepted[: self._look_up.max_keys], accepted[self._look_up.max_keys :]
            # The last of several rows with one key is what an upsert leaves there.
            by_key = {key: values for key, values in rows.sent(set(some)).values() if key}
            self._tally["keyless"] += len(some) - len(by_key)
            keys = list(by_key)
            while keys:
                count = self._look_up.fit(company, keys)
                asked, keys = keys[:count], keys[count:]
                yield asked, [by_key[key] for key in asked]

    async def _ask(self, company: Company, keys: Sequence[str], budget: SharedBudget) -> Mapping[str, Sequence[Entity]]:
        profile = self._prepared.profile
        for attempt in range(1, profile.retry.attempts + 1):
            while isinstance(right := await budget.reserve(company, self._clock.wall(), endpoint="look-up"), Wait):
                await self._clock.sleep(max(right.until - self._clock.wall(), 0.001))
            self._tally["calls"] += 1
            try:
                reply = await self._send(self._look_up.request(company, keys))
                if 200 <= reply.status < 300:
                    return self._look_up.read(reply)
            except (TransportError, DecodeError):
                reply = Reply(503, {}, b"")
            finally:
                budget.settled(right, self._clock.wall())
            wait_s = retry_after(reply.headers.get("retry-after"), self._clock.wall())
            decision = after_refusal(profile.retry, attempt, wait_s, random.Random())  # noqa: S311 spreads waits
            if isinstance(decision, GiveUp) or reply.status not in {429, 500, 502, 503, 504}:
                break
            await self._clock.sleep(decision.delay_s)
        message = f"company {company}: a look-up was answered with HTTP {reply.status}; nothing is proved"
        raise TargetError(message)
