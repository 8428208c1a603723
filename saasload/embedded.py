"""Start a mock server of our own as a child process, for loads without a target."""

import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE

import anyio
import anyio.abc
import orjson

from saasload.errors import TargetError

START_S = 20.0
DEFAULT_TIME_SCALE = 20.0


@dataclass(frozen=True, slots=True)
class Embedded:
    """A running mock server."""

    url: str
    time_scale: float


@contextlib.asynccontextmanager
async def embedded_server(time_scale: float) -> AsyncIterator[Embedded]:
    """Run a mock server on a free loopback port for as long as the block lasts.

    It ends with us, even if we are killed: it watches its standard input, whose other end is ours.
    """
    command = [sys.executable, "-m", "mock_server", "--port", "0", "--announce", "--die-with-stdin",
               "--time-scale", str(time_scale)]  # fmt: skip
    # a session of its own: Ctrl-C is for us, the server has to answer what is on the wire
    async with await anyio.open_process(
        command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
    ) as child:
        try:
            yield Embedded(await _announced(child), time_scale)
        finally:
            with anyio.CancelScope(shield=True):
                if child.returncode is None:
                    child.terminate()
                with anyio.move_on_after(5.0):
                    await child.wait()
                if child.returncode is None:
                    child.kill()


async def _announced(child: anyio.abc.Process) -> str:
    """Wait for the line by which the server says where it listens."""
    line = b""
    if child.stdout is not None:
        with anyio.move_on_after(START_S), contextlib.suppress(anyio.EndOfStream):
            while not line.endswith(b"\n"):
                line += await child.stdout.receive()
    try:
        return str(orjson.loads(line)["url"])
    except (ValueError, KeyError) as error:
        message = "the embedded mock server did not start; run `saasload mock` to see why"
        raise TargetError(message) from error
