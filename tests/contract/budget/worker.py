"""One loader of several: sends to some companies as fast as the shared budget allows, and says what came of it.

Its arguments are one JSON object: where the budget and the mock are, until when to send, and how.
"""

import asyncio
import json
import os
import random
import sys
from collections import Counter
from typing import Any

import httpx

from saasload.budget import COMMON_EPOCH_S, SharedBudget, Ticket, open_store
from saasload.budget.shared import Terms
from saasload.clock import Clock
from saasload.model import Company
from saasload.policy.headers import HeaderSpec, WindowHeaders, read_limits
from saasload.policy.ledger_windows import Rule

SPEC = HeaderSpec((
    WindowHeaders("minute", 60.0, "x-ratelimit-minutely-limit", "x-ratelimit-minutely-remaining",
                  "x-ratelimit-minutely-reset", "epoch_ms"),
    WindowHeaders("day", 86_400.0, "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "epoch_ms"),
))  # fmt: skip


def complain(line: str) -> None:
    """Say what the budget says on standard error."""
    sys.stderr.write(f"{line}\n")


async def main(told: dict[str, Any]) -> None:
    """Run lanes until the time is over."""
    clock = Clock.real(told["scale"], epoch_s=COMMON_EPOCH_S)
    rules = [Rule("minute", "company", told["kind"], 60, 60.0), Rule("day", "company", "fixed", 5000, 86_400.0)]
    store = await open_store(told["budget"], "shared")
    terms = Terms(f"{os.getpid()}", longest_s=60.0 * told["scale"], time_scale=told["scale"])
    budget = SharedBudget(rules, store, terms, rng=random.Random(os.getpid()), say=complain)
    counts = {"accepted": 0, "refused": 0}
    minutes = Counter[str]()
    headers = {"Authorization": "Bearer mock-token"}
    async with httpx.AsyncClient(base_url=told["url"], headers=headers, trust_env=False, timeout=60.0) as client:
        sent = clock.wall()
        reply = await client.get("/api/v1/current/Me")
        budget.saw_date(read_limits(reply.headers, SPEC, clock.wall()), sent, clock.wall())
        print("ready", flush=True)  # noqa: T201 all begin at once
        sys.stdin.readline()
        loop = asyncio.get_running_loop()
        ends = loop.time() + told["lasts_s"]

        async def lane(company: Company) -> None:
            while loop.time() < ends:
                got = await budget.reserve(company, clock.wall())
                if not isinstance(got, Ticket):
                    await asyncio.sleep(min(ends - loop.time(), max(0.0, (got.until - clock.wall()) / told["scale"])))
                    continue
                reply = await client.get(f"/api/v1/{company}/crm/Accounts/$count")
                facts = read_limits(reply.headers, SPEC, clock.wall())
                budget.settled(got, clock.wall(), facts)
                minutes[f"{company}/{reply.headers.get('x-ratelimit-minutely-reset')}"] += reply.status_code == 200
                counts["accepted" if reply.status_code == 200 else "refused"] += 1
                if reply.status_code == 429:
                    budget.refused(got, clock.wall(), facts.wait_s() or 1.0, facts)

        await asyncio.gather(*(lane(Company(company)) for company in told["companies"] for _ in range(told["lanes"])))
        await budget.aclose()
    print(json.dumps({**counts, "asked": budget.asked, "minutes": minutes}))  # noqa: T201 it is how it answers


asyncio.run(main(json.loads(sys.argv[1])))
