"""The way to the target: its address, its connection, its companies, its time, and the budget of its limits."""

import contextlib
import os
import random
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import anyio

from saasload.budget import COMMON_EPOCH_S, SharedBudget, open_store, store_name
from saasload.budget.shared import Terms as BudgetTerms
from saasload.clock import Clock
from saasload.companies import read_companies
from saasload.embedded import DEFAULT_TIME_SCALE, embedded_server
from saasload.errors import BusyError, DecodeError, InDoubtError, NotSentError, TargetError
from saasload.job import EMBEDDED, Job
from saasload.load import Observer, Watch
from saasload.model import Reply
from saasload.policy.headers import header_spec, read_limits
from saasload.policy.ledger_windows import rules_of
from saasload.policy.retry import GiveUp, after_refusal
from saasload.prepare import Prepared
from saasload.source.partition import CompanyInfo
from saasload.transport import App, Network, Sender, TokenFile, open_client

FIRST_TRIES = 5
FIRST_WAIT_S = 60.0
"""How often, and how long at a time, the list of companies is tried for."""


def _silent(_line: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a load is given from outside, apart from its job.

    `app` answers in this process instead of a server, and `clock` is then the time both go by. `watch` runs
    beside the load; `say` takes lines for people; with `signals` SIGINT and SIGTERM stop the load in good order.
    `observer` is told of the load's beginning, its calls and its end.
    """

    app: App | None = None
    clock: Clock | None = None
    watch: Watch | None = None
    say: Callable[[str], None] = _silent
    signals: bool = False
    observer: Observer = field(default_factory=Observer)


@contextlib.asynccontextmanager
async def connected(prepared: Prepared, around: Surroundings) -> AsyncIterator[tuple[Sender, str]]:
    """Open the way to a job's target; give what sends there, and its address."""
    job = prepared.job
    async with _target(job, around) as url:
        network = Network(
            keepalive_s=prepared.profile.keepalive_s,
            proxies="none" if job.to == EMBEDDED else "environment",
        )
        auth = None if job.token_file is None else TokenFile(job.token_file)
        headers = {} if auth else {"Authorization": f"Bearer {prepared.token.get_secret_value()}"}
        async with open_client(
            base_url=url, parallel=job.connections, app=around.app, auth=auth, network=network
        ) as client:
            yield Sender(url, client, headers, network=network), url


def clock_of(prepared: Prepared, around: Surroundings, first: Reply) -> Clock:
    """Take the time to go by: ours, or a mock's, on a wall that all processes of this machine have in common."""
    if around.clock is not None:
        return around.clock
    scale = _time_scale(prepared, first)
    return Clock.real() if scale == 1.0 else Clock.real(scale, epoch_s=COMMON_EPOCH_S)


@contextlib.asynccontextmanager
async def open_budget(
    prepared: Prepared, around: Surroundings, url: str, clock: Clock, first: Reply
) -> AsyncIterator[SharedBudget]:
    """Open the budget that loads into this target share. Raises ConfigError where its place cannot be used."""
    job, profile = prepared.job, prepared.profile
    name = store_name(url, profile.name, _app(prepared))
    store = await open_store(job.budget_place if profile.limits else "", name)
    longest_s = (job.deadline_s or profile.deadline_s) + 5.0
    terms = BudgetTerms(f"{os.getpid()}-{secrets.token_hex(4)}", longest_s, time_scale=clock.scale)
    rng = random.Random(job.seed)  # noqa: S311 spreads waits, guards nothing
    budget = SharedBudget(rules_of(profile.limits), store, terms, rng=rng, say=around.say)
    wall = clock.wall()
    budget.saw_date(read_limits(first.headers, header_spec(profile), wall), wall, wall)
    try:
        yield budget
    finally:
        with anyio.CancelScope(shield=True):
            await budget.aclose()


@contextlib.asynccontextmanager
async def _target(job: Job, around: Surroundings) -> AsyncIterator[str]:
    """Give the address to load to: the job's, or that of a mock server started for it."""
    if job.to != EMBEDDED:
        yield job.to.rstrip("/")
    elif around.app is not None:
        yield "http://127.0.0.1"
    else:
        async with embedded_server(job.time_scale or DEFAULT_TIME_SCALE) as server:
            around.say(
                f"the target is an embedded mock server at {server.url}, "
                f"where time runs {server.time_scale:g} times faster; name another with --to"
            )
            yield server.url


async def first_contact(sender: Sender, prepared: Prepared) -> tuple[list[CompanyInfo], Reply]:
    """Read the target's companies; its first reply comes along. Raises TargetError where it cannot be used."""
    rng = random.Random(prepared.job.seed)  # noqa: S311 spreads waits, guards nothing
    retry = prepared.profile.retry
    for attempt in range(1, FIRST_TRIES + 1):
        try:
            return await read_companies(sender.send, prepared.profile)
        except NotSentError as error:
            message = f"{error}; is the server running, and is the address right?"
            raise TargetError(message) from error
        except (BusyError, InDoubtError, DecodeError) as error:
            # A list may be asked for as often as it takes; but whoever started this waits for a first word.
            asked = error.retry_after_s if isinstance(error, BusyError) else None
            decision = after_refusal(retry, attempt, asked, rng)
            if attempt == FIRST_TRIES or isinstance(decision, GiveUp) or decision.delay_s > FIRST_WAIT_S:
                raise TargetError(f"{error}; try again later") from error
            await anyio.sleep(decision.delay_s / max(prepared.job.time_scale or 1.0, 1.0))
    raise AssertionError


def _time_scale(prepared: Prepared, first: Reply) -> float:
    """Take the pace of the target's time from the job, or from what a mock server says of itself."""
    stated = first.headers.get(prepared.profile.time_scale_header or "", "")
    if prepared.job.to != EMBEDDED and prepared.job.time_scale is not None:
        return prepared.job.time_scale
    try:
        scale = float(stated or 1.0)
    except ValueError:
        return 1.0
    return scale if 0.0 < scale <= 1e6 else 1.0


def _app(prepared: Prepared) -> str:
    """Tell one app from another at a target by its token, of which no store can give anything away."""
    job = prepared.job
    return str(job.token_file) if job.token_file is not None else prepared.token.get_secret_value()
