"""Tokens against forgery: what a client has to show with each call that changes something.

As at the gateways that ask for one: a GET with `x-csrf-token: Fetch` is answered with a token and with the cookies of
a session, the token opens nothing without them, and both are of one company.
"""

import random

from mock_server.replies import Reply, error
from mock_server.scenario import CsrfSpec

HEADER = b"x-csrf-token"
_BALANCER = b"mock_balancer=%b; Expires=Tue, 19 Jan 2038 03:14:07 GMT; Path=/"


class Sessions:
    """The sessions that were given out; each lasts some seconds, or some calls."""

    def __init__(self, spec: CsrfSpec, *, seed: int) -> None:
        """Begin with none."""
        self._spec = spec
        self._rng = random.Random(f"{seed}:csrf")  # noqa: S311 - a simulation: the same in each run
        self._open: dict[tuple[int, bytes], tuple[frozenset[bytes], float]] = {}
        self._calls: dict[tuple[int, bytes], int] = {}
        self.given = 0

    def give(self, company: int, now_s: float) -> list[tuple[bytes, bytes]]:
        """Return the headers that hand a token out."""
        self.given += 1
        token, session, place = (b"%024x" % self._rng.getrandbits(96) for _ in range(3))
        cookies = frozenset({b"mock_session=" + session, b"mock_balancer=" + place})
        self._open[company, token] = cookies, now_s + self._spec.lasts_s
        self._calls[company, token] = 0
        return [
            (HEADER, token),
            (b"set-cookie", b"mock_session=%b; Path=/; HttpOnly" % session),
            (b"set-cookie", _BALANCER % place),
        ]

    def check(self, company: int, token: bytes, cookie: bytes, now_s: float) -> Reply | None:
        """Return the refusal, None for a call that shows what it was given."""
        key = company, token
        cookies, until_s = self._open.get(key, (frozenset[bytes](), 0.0))
        shown = {one.strip() for one in cookie.split(b";")}
        worn_out = self._spec.lasts_calls and self._calls.get(key, 0) >= self._spec.lasts_calls
        if now_s < until_s and not worn_out and cookies <= shown:
            self._calls[key] += 1
            return None
        reply = error(403, "CSRF token validation failed")
        reply.headers.append((HEADER, b"Required"))
        return reply
