"""Stores, and a Redis of our own."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from saasload.budget import MemoryStore, Store, open_store

Open = Callable[[], Awaitable[Store]]

NO_REDIS = "no redis-server on this machine: apt-get install redis-server"


class RedisServer:
    """A `redis-server` on a port of its own that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        """Choose a free port."""
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"redis://:secret@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder), "--save", ""]
        command = [shutil.which("redis-server") or "", *options, "--requirepass", "secret"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "Ready to accept connections" in line:
                return
        pytest.fail("redis-server did not start")

    def stop(self) -> None:
        """Stop it as an accident would: what it kept is gone."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Redis for all tests that leave it alone."""
    yield from _served(tmp_path_factory.mktemp("redis"))


@pytest.fixture
def mortal_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """One that the test may stop."""
    yield from _served(tmp_path)


def _served(folder: Path) -> Iterator[RedisServer]:
    if shutil.which("redis-server") is None:
        pytest.skip(NO_REDIS)
    pytest.importorskip("redis", reason="the extra is not installed: pip install 'saasload[redis]'")
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Each store: a function that opens the same one again, as another process would."""
    if request.param == "memory":
        only = MemoryStore()

        async def same() -> Store:
            return only

        return same
    where = str(tmp_path) if request.param == "sqlite" else request.getfixturevalue("redis_server").url
    return lambda: open_store(where, tmp_path.name)
