"""Stores that cannot be used, go away, forget, or are left by a process that was killed."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from saasload.budget import SharedBudget, Ticket, Wait, open_store, store_name
from saasload.budget.shared import Terms
from saasload.errors import ConfigError
from saasload.model import Company
from saasload.policy.ledger_windows import Rule

from .conftest import RedisServer

NOON = 1_767_614_400.0
RULE = Rule("minute", "company", "sliding", 20, 60.0)
DAY = Rule("day", "company", "fixed", 1000, 86_400.0)
ONE = Company("118")


def refused(where: str) -> str:
    """Return the one line that says why a store cannot be opened."""
    with pytest.raises(ConfigError) as caught:
        asyncio.run(open_store(where, "x"))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_budget_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Here it would lie below a file."""
    (tmp_path / "file").touch()

    assert refused(str(tmp_path / "file" / "budgets")) == (
        f"budget directory {tmp_path}/file/budgets: cannot be used: not a directory"
    )


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a directory that even root cannot write to")
def test_a_budget_directory_that_cannot_be_written_is_named() -> None:
    """Whoever asks."""
    assert refused("/proc/self/task").startswith("budget directory /proc/self/task: cannot be used: unable to open")


def test_a_file_that_is_no_budget_is_named(tmp_path: Path) -> None:
    """It is left as it is."""
    (tmp_path / "x.sqlite3").write_bytes(b"notes of mine, and more of them, and more" * 10)

    assert "file is not a database" in refused(str(tmp_path))


def test_a_redis_that_does_not_answer_is_named_without_its_password(mortal_redis: RedisServer) -> None:
    """Where nothing listens, and where the password is wrong."""
    wrong = mortal_redis.url.replace("secret", "hush-hush")
    assert "invalid username-password pair" in refused(wrong)
    mortal_redis.stop()

    for url in (wrong, mortal_redis.url):
        line = refused(url)
        assert line.startswith(f"budget at redis://127.0.0.1:{mortal_redis.port}/0: cannot be reached: ")
        assert "hush-hush" not in line
        assert "secret" not in line


@pytest.mark.parametrize("where", ["redis://127.0.0.1:0x1/0", "http://example.org", "redis://[::1/0"])
def test_an_address_that_is_none_is_named(where: str) -> None:
    """One line, whatever is wrong with it."""
    assert refused(where).startswith("budget ")


def test_names_tell_apps_apart_and_give_nothing_away() -> None:
    """The same identity gives the same name, in every process."""
    assert store_name("https://a.example", "app") == store_name("https://a.example", "app")
    assert store_name("https://a.example", "app") != store_name("https://a.example", "ap", "p")
    assert len(store_name("https://a.example", "secret")) == 12


def shared(test: Callable[[Callable[[str], Awaitable[SharedBudget]], list[str]], Awaitable[None]], where: str) -> None:
    """Run a test with a function by which processes join a budget, and a list of what was said."""
    said: list[str] = []

    async def all_of_it() -> None:
        joined: list[SharedBudget] = []

        async def join(name: str) -> SharedBudget:
            store = await open_store(where, "x")
            budget = SharedBudget([RULE, DAY], store, Terms(name, 10.0), rng=random.Random(1), say=said.append)
            joined.append(budget)
            return budget

        try:
            await test(join, said)
        finally:
            for budget in joined:
                await budget.aclose()

    asyncio.run(all_of_it())


def test_redis_that_goes_away_stops_what_is_not_leased_and_comes_back(mortal_redis: RedisServer) -> None:
    """Closed at the last known budget, said once; emptied on return, nothing leaves for a minute."""

    async def test(join: Callable[[str], Awaitable[SharedBudget]], said: list[str]) -> None:
        one = await join("one")
        assert isinstance(await one.reserve(ONE, NOON), Ticket)
        mortal_redis.stop()
        left = 0
        while isinstance(wait := await one.reserve(ONE, NOON + 1), Ticket):
            left += 1
        assert left == 1  # the rest of the lease
        assert 0.5 <= wait.until - (NOON + 1) <= 5.0
        assert isinstance(await one.reserve(ONE, wait.until), Wait)
        assert len(said) == 1
        assert "nothing leaves beyond what is leased until it answers again" in said[0]

        mortal_redis.start()
        wait = await one.reserve(ONE, NOON + 10)
        assert isinstance(wait, Wait)
        assert said[1:] == ["the shared budget answers again; going on"]
        assert wait.free_at >= NOON + 60
        assert isinstance(await one.reserve(ONE, wait.until + 60), Ticket)

        other = await join("other")
        taken = 0
        while isinstance(await other.reserve(ONE, wait.until + 60), Ticket):
            taken += 1
        assert taken <= 20 - 1

    shared(test, mortal_redis.url)


KILLED = """
import asyncio, os, random, signal, sys
from saasload.budget import SharedBudget, open_store
from saasload.budget.shared import Terms
from saasload.policy.ledger_windows import Rule

async def main():
    store = await open_store(sys.argv[1], "x")
    rules = [Rule("minute", "company", "sliding", 20, 60.0), Rule("day", "company", "fixed", 1000, 86_400.0)]
    budget = SharedBudget(rules, store, Terms("killed", 10.0), rng=random.Random(1), say=print)
    for _ in range(7):
        await budget.reserve("118", float(sys.argv[2]))
    await store.change(["minute/118"], lambda windows: os.kill(os.getpid(), signal.SIGKILL))

asyncio.run(main())
"""


def test_a_process_killed_in_the_middle_of_a_change_leaves_whole_books(tmp_path: Path) -> None:
    """What it had counts as spent until its leases run out; the file is not locked for the others."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(NOON)], check=False, env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL

    async def test(join: Callable[[str], Awaitable[SharedBudget]], said: list[str]) -> None:
        one = await join("one")
        taken = 0
        while isinstance(await one.reserve(ONE, NOON + 1), Ticket):
            taken += 1
        assert 11 <= taken <= 13
        assert not said

    shared(test, str(tmp_path))
