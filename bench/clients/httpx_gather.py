"""(c) `httpx` as its users write it today: one AsyncClient, gather, and a semaphore."""

import asyncio

import httpx

from bench.clients.common import Watch, arguments
from bench.clients.plain import Post, check, posts


async def _main() -> None:
    options = arguments()
    watch = Watch()
    room = asyncio.Semaphore(options.parallel)
    async with httpx.AsyncClient(base_url=options.url, timeout=120) as client:

        async def send(post: Post) -> int:
            async with room:
                reply = await client.post(post.path, content=post.body, headers=post.headers)
            check(options.mode, reply.status_code, "" if options.mode == "insert" else reply.text, post.rows)
            return post.rows

        done = await asyncio.gather(*(send(post) for post in posts(options.file, options.mode)))
    watch.say(calls=len(done), rows=sum(done))


if __name__ == "__main__":
    asyncio.run(_main())
