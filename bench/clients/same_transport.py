"""(a) Ready-made bodies over saasload's own transport: what is left when all else costs nothing.

Only the status of each reply is looked at.
"""

import asyncio
import contextlib
from collections.abc import Iterator

from bench.clients.common import TOKEN, Watch, arguments
from bench.inputs import Ready, read_ready
from saasload.transport import Sender, open_client


async def _work(sender: Sender, waiting: Iterator[Ready]) -> None:
    for ready in waiting:
        reply = await sender.send(ready.request)
        if not 200 <= reply.status < 300:
            message = f"HTTP {reply.status}: {reply.body[:200]!r}"
            raise RuntimeError(message)


async def _main() -> None:
    options = arguments()
    ready = read_ready(options.file)
    async with open_client(base_url=options.url, parallel=options.parallel) as client:
        sender = Sender(options.url, client, {"Authorization": f"Bearer {TOKEN}"})
        watch = Watch()
        waiting = iter(ready)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(options.parallel):
                tasks.create_task(_work(sender, waiting))
        watch.say(calls=len(ready), rows=sum(one.rows for one in ready))


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        import uvloop

        uvloop.install()
    asyncio.run(_main())
