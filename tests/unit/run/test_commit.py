"""Group commit: nobody goes on before what they wait for is durable."""

import threading
from collections.abc import Awaitable, Callable, Sequence

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saasload.errors import RunFolderError
from saasload.run.commit import GroupCommit

BACKENDS = [("asyncio", True), ("asyncio", False), ("trio", False)]


class Disk:
    """Keeps what is written, in order, and fails where it is told to."""

    def __init__(self, *, fail_at: int = 0, gate: threading.Event | None = None) -> None:
        """Fail at the n-th write; wait for the gate at each."""
        self.written: list[int] = []
        self.writes = 0
        self.threads: set[int] = set()
        self._fail_at = fail_at
        self._gate = gate

    def write(self, records: Sequence[int]) -> None:
        """Write records together, or none of them."""
        self.writes += 1
        self.threads.add(threading.get_ident())
        if self._gate is not None:
            assert self._gate.wait(10)
        if self.writes == self._fail_at:
            raise RunFolderError("disk full")
        self.written.extend(records)


def run(backend: str, main: Callable[[], Awaitable[None]]) -> None:
    """Run on a backend."""
    anyio.run(main, backend=backend)


@pytest.mark.parametrize(("backend", "threads"), BACKENDS)
@settings(max_examples=40, deadline=None)
@given(turns=st.lists(st.integers(0, 3), min_size=1, max_size=30), fail_at=st.integers(0, 4))
def test_no_call_is_released_before_its_record_is_durable(
    backend: str, threads: bool, turns: list[int], fail_at: int
) -> None:
    """Each of many waiters finds its own record written when it goes on, or is told that it is not."""
    disk = Disk(fail_at=fail_at)
    commit = GroupCommit[int](disk.write, threads=threads)
    released: list[int] = []
    failed: list[int] = []

    async def call(number: int, turn: int) -> None:
        for _ in range(turn):
            await anyio.lowlevel.checkpoint()
        commit.add(number)
        try:
            await commit.durable()
        except RunFolderError:
            assert number not in disk.written
            failed.append(number)
        else:
            assert number in disk.written
            released.append(number)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for number, turn in enumerate(turns):
                tasks.start_soon(call, number, turn)

    run(backend, main)
    commit.close()

    assert sorted(released + failed) == list(range(len(turns)))
    assert sorted(disk.written) == sorted(released)
    assert bool(failed) == (0 < fail_at <= disk.writes)


@pytest.mark.parametrize(("backend", "threads"), BACKENDS)
def test_many_records_are_one_write_and_keep_their_order(backend: str, threads: bool) -> None:
    """A hundred waiters that are ready at once cost one write, not a hundred."""
    disk = Disk()
    commit = GroupCommit[int](disk.write, threads=threads)

    async def call(number: int) -> None:
        commit.add(number)
        await commit.durable()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(call, number)

    run(backend, main)
    commit.close()

    assert sorted(disk.written) == list(range(100))
    assert disk.writes <= 2
    assert (threading.get_ident() in disk.threads) == (not threads)


def test_records_that_come_while_a_write_is_under_way_go_together_in_the_next() -> None:
    """The disk is busy with the first; ninety-nine more come and are one write."""
    gate = threading.Event()
    disk = Disk(gate=gate)
    commit = GroupCommit[int](disk.write, threads=True)

    async def call(number: int) -> None:
        commit.add(number)
        await commit.durable()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, 0)
            while not disk.writes:
                await anyio.lowlevel.checkpoint()
            for number in range(1, 100):
                tasks.start_soon(call, number)
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            gate.set()

    run("asyncio", main)
    commit.close()

    assert disk.written == list(range(100))
    assert disk.writes == 2


@pytest.mark.parametrize(("backend", "threads"), BACKENDS)
def test_an_error_reaches_all_who_waited_for_that_write_and_nobody_else(backend: str, threads: bool) -> None:
    """The waiters of the failed write are told, those of the next go on."""
    disk = Disk(fail_at=1)
    commit = GroupCommit[int](disk.write, threads=threads)
    told: list[str] = []

    async def call(number: int) -> None:
        commit.add(number)
        try:
            await commit.durable()
        except RunFolderError as error:
            told.append(str(error))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(call, number)
        commit.add(9)
        await commit.durable()

    run(backend, main)
    commit.close()

    assert told == ["disk full"] * 5
    assert disk.written == [9]


@pytest.mark.parametrize(("backend", "threads"), BACKENDS)
def test_a_waiter_that_is_cancelled_loses_nothing_and_holds_up_nobody(backend: str, threads: bool) -> None:
    """Cancelled before the write or while it is under way: its record and all others become durable."""
    disk = Disk()
    commit = GroupCommit[int](disk.write, threads=threads)

    async def call(number: int) -> None:
        commit.add(number)
        await commit.durable()

    async def main() -> None:
        for turns in range(4):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, turns * 10)
                tasks.start_soon(call, turns * 10 + 1)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            with anyio.fail_after(5):
                await call(turns * 10 + 2)

    run(backend, main)
    commit.close()

    assert {turns * 10 + 2 for turns in range(4)} <= set(disk.written)
    assert len(disk.written) == len(set(disk.written))


def test_a_write_under_way_is_not_given_up_with_the_task_that_began_it() -> None:
    """Cancelled while the disk is at work: who waits for the same write learns that it went well."""
    gate = threading.Event()
    disk = Disk(gate=gate)
    commit = GroupCommit[int](disk.write, threads=True)
    released: list[int] = []

    async def call(number: int, scope: anyio.CancelScope) -> None:
        with scope:
            commit.add(number)
            await commit.durable()
            released.append(number)

    async def main() -> None:
        first, second = anyio.CancelScope(), anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, 1, first)
            tasks.start_soon(call, 2, second)
            while not disk.writes:
                await anyio.lowlevel.checkpoint()
            first.cancel()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            gate.set()

    run("asyncio", main)
    commit.close()

    assert disk.written == [1, 2]
    assert disk.writes == 1
    assert 2 in released


def test_closing_writes_what_nobody_waited_for() -> None:
    """Answers are added without waiting; the end makes them durable, and ends the thread."""
    disk = Disk()
    commit = GroupCommit[int](disk.write, threads=True)

    async def main() -> None:
        commit.add(1)
        await commit.durable()
        commit.add(2)

    run("asyncio", main)
    commit.close()
    commit.close()

    assert disk.written == [1, 2]
    assert "saasload-journal" not in {thread.name for thread in threading.enumerate()}


def test_closing_says_that_the_write_under_way_failed() -> None:
    """Also where whoever waited for it has been cancelled."""
    gate = threading.Event()
    disk = Disk(fail_at=1, gate=gate)
    commit = GroupCommit[int](disk.write, threads=True)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            commit.add(1)
            tasks.start_soon(commit.durable)
            while not disk.writes:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        gate.set()

    run("asyncio", main)

    with pytest.raises(RunFolderError, match="disk full"):
        commit.close()


def test_waiting_for_nothing_writes_nothing() -> None:
    """With no record there is no write."""
    disk = Disk()
    commit = GroupCommit[int](disk.write, threads=False)

    run("trio", commit.durable)

    assert disk.writes == 0


def test_a_failure_that_is_not_the_disks_is_raised_as_it_is_and_told_to_the_others() -> None:
    """A fault of ours stops its own task by its own name, and leaves no other waiting for ever."""

    def broken(_records: Sequence[int]) -> None:
        raise ZeroDivisionError("ours")

    commit = GroupCommit[int](broken, threads=False)
    told: list[str] = []

    async def call(number: int) -> None:
        commit.add(number)
        try:
            await commit.durable()
        except (RunFolderError, ZeroDivisionError) as error:
            told.append(type(error).__name__)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(call, number)

    run("trio", main)

    assert sorted(told) == ["RunFolderError", "RunFolderError", "ZeroDivisionError"]
