"""Prove a run: read the target back by natural key and compare with what was accepted."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
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

    `different` are there once, with another content; `replaced` were updated by a later row with their key, of
    which alone the target can tell; `keyless` cannot be asked for.
    """

    run: str
    expected: int
    once: int
    missing: int
    twice: int
    different: int
    replaced: int
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
        if self.replaced:
            lines.append(f"{self.replaced:,} rows were updated by a later row with their key")
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
        names = ("expected", "once", "missing", "twice", "different", "replaced", "keyless", "calls")
        return Proof(run, **{name: self._tally[name] for name in names})

    async def _company(self, company: Company, budget: SharedBudget) -> None:
        rows = SpooledRows(self._prepared, self._spool, company, self._statuses)
        async with self._slots:
            last, wanted = self._last_of_each_key(rows)
            for asked in self._questions(company, rows, last):
                found = await self._ask(company, [key for key, _ in asked], budget)
                for key, values in asked:
                    self._compare(wanted[key.strip()], values, found.get(key.strip(), []))

    def _last_of_each_key(self, rows: SpooledRows) -> tuple[list[int], Counter[str]]:
        """Find the last accepted row of each key, and how many rows of it should be there.

        That is one, which the last row updated, unless the target created several with one key.
        """
        accepted = rows.accepted()
        last: dict[str, int] = {}
        created: Counter[str] = Counter()
        keyed = 0
        for row, key in rows.keys(accepted):
            keyed += 1
            last[key.strip()] = max(row, last.get(key.strip(), 0))
            created[key.strip()] += self._statuses[row] == RowStatus.CREATED
        wanted = Counter({key: max(1, created[key]) for key in last})
        self._tally["expected"] += len(accepted)
        self._tally["keyless"] += len(accepted) - keyed
        self._tally["replaced"] += keyed - wanted.total()
        return sorted(last.values()), wanted

    def _compare(self, wanted: int, values: Mapping[str, Plain], there: Sequence[Entity]) -> None:
        if len(there) > wanted:
            self._tally["twice"] += wanted
            return
        self._tally["once"] += len(there)
        self._tally["missing"] += wanted - len(there)
        if wanted == 1 and there and self._look_up.differing(values, there[0]):
            self._tally["different"] += 1

    def _questions(
        self, company: Company, rows: SpooledRows, last: list[int]
    ) -> Iterator[Sequence[tuple[str, Mapping[str, Plain]]]]:
        while last:
            some, last = last[: self._look_up.max_keys], last[self._look_up.max_keys :]
            sent = list(rows.sent(set(some)).values())
            while sent:
                count = self._look_up.fit(company, [key for key, _ in sent])
                yield sent[:count]
                sent = sent[count:]

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
