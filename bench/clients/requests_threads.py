"""(c) `requests` as most write it today: a pool of threads, a session in each."""

import threading
from concurrent.futures import ThreadPoolExecutor

import requests

from bench.clients.common import Watch, arguments
from bench.clients.plain import Post, check, posts

_OWN = threading.local()


def _main() -> None:
    options = arguments()
    watch = Watch()

    def send(post: Post) -> int:
        session = getattr(_OWN, "session", None)
        if session is None:
            session = _OWN.session = requests.Session()
        reply = session.post(options.url + post.path, data=post.body, headers=post.headers, timeout=120)
        check(options.mode, reply.status_code, "" if options.mode == "insert" else reply.text, post.rows)
        return post.rows

    with ThreadPoolExecutor(options.parallel) as pool:
        done = list(pool.map(send, posts(options.file, options.mode)))
    watch.say(calls=len(done), rows=sum(done))


if __name__ == "__main__":
    _main()
