"""Tokens: who may come in, and how a client stays in.

The rules are those of the platform: an access token lasts ten minutes, a refresh token is used once, is refused
when it comes too early, and an old one ends the connection until a person signs in again.
"""

import random
from dataclasses import asdict, dataclass, field
from typing import Any

from mock_server.replies import Reply, error
from mock_server.scenario import OAuthSpec

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Denied:
    """A call of the token endpoint refused."""

    status: int
    error: str = ""
    text: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """What a sign-in or a refresh gives."""

    access: str
    refresh: str


@dataclass(slots=True)
class State:
    """Everything that a restart must not forget."""

    issued: int = 0
    codes: dict[str, tuple[float, str]] = field(default_factory=dict)
    access: dict[str, float] = field(default_factory=dict)
    refresh: str = ""
    refreshed_at_s: float = 0.0
    old: list[str] = field(default_factory=list)
    day: int = -1
    calls_of_day: int = 0


class Door:
    """Lets in whoever carries a token: the scenario's own where there is no OAuth, else one that was given out."""

    def __init__(self, token: str, spec: OAuthSpec | None, *, seed: int) -> None:
        """Open with nobody signed in."""
        self._fixed = b"Bearer " + token.encode()
        self._rng = random.Random(f"{seed}:oauth")  # noqa: S311 - a simulation: the same in each run
        self.spec = spec
        self.state = State()

    def check(self, authorization: bytes, wall_s: float) -> Reply | None:
        """Return the refusal, None for whoever may come in."""
        if self.spec is None:
            if authorization == self._fixed:
                return None
        elif wall_s < self.state.access.get(authorization.removeprefix(b"Bearer ").decode("latin-1"), 0.0):
            return None
        reply = error(401, "Unauthorized: access token missing, expired or not valid")
        reply.headers.append((b"www-authenticate", b"Bearer"))
        return reply

    def new_code(self, spec: OAuthSpec, redirect_uri: str, wall_s: float) -> str:
        """Give out a code for a person who said yes."""
        code = f"mock!{self._draw()}"
        self.state.codes[code] = (wall_s + spec.code_s, redirect_uri)
        return code

    def redeem(self, spec: OAuthSpec, *, code: str, redirect_uri: str, wall_s: float) -> Pair | Denied:
        """Give tokens for a code: once, in time, and to the address that it was sent to."""
        denied = self._count(spec, wall_s)
        if denied is not None:
            return denied
        until_s, address = self.state.codes.pop(code, (0.0, ""))
        if wall_s >= until_s or address != redirect_uri:
            return Denied(400, text="Bad Request")
        return self._issue(spec, wall_s)

    def renew(self, spec: OAuthSpec, *, refresh: str, wall_s: float) -> Pair | Denied:
        """Give new tokens for a refresh token."""
        denied = self._count(spec, wall_s)
        if denied is not None:
            return denied
        state = self.state
        if not refresh or refresh != state.refresh:
            if refresh in state.old and spec.reuse_kills:
                state.refresh = ""
            return Denied(401, "unauthorized_client", "Old refresh token used.")
        age_s = wall_s - state.refreshed_at_s
        if age_s < spec.earliest_refresh_s:
            wait_s = spec.earliest_refresh_s - age_s
            return Denied(
                400, "access_denied", "Rate limit exceeded: access_token not expired",
                f"TooEarlyToRefreshTokens: {wait_s:.0f} seconds to wait",
            )  # fmt: skip
        expires_s = state.refreshed_at_s + spec.refresh_days * DAY_S
        if wall_s >= expires_s:
            text = f"The refresh token expired at {expires_s:.0f} and it is now {wall_s:.0f}"
            return Denied(400, "invalid_request", text)
        return self._issue(spec, wall_s)

    def dump(self) -> dict[str, Any]:
        """Return what must outlive a restart."""
        return asdict(self.state)

    def load(self, kept: dict[str, Any]) -> None:
        """Go on from what an earlier process kept."""
        codes = {code: (float(until_s), str(uri)) for code, (until_s, uri) in kept.pop("codes").items()}
        self.state = State(**kept, codes=codes)
        for _ in range(self.state.issued):
            self._rng.getrandbits(192)

    def _count(self, spec: OAuthSpec, wall_s: float) -> Denied | None:
        state, day = self.state, int(wall_s // DAY_S)
        if state.day != day:
            state.day, state.calls_of_day = day, 0
        if state.calls_of_day >= spec.tokens_per_day:
            return Denied(429)
        state.calls_of_day += 1
        return None

    def _issue(self, spec: OAuthSpec, wall_s: float) -> Pair:
        state = self.state
        if state.refresh:
            state.old.append(state.refresh)
        state.access = {token: until_s for token, until_s in state.access.items() if wall_s < until_s}
        pair = Pair(f"mock.{self._draw()}", f"mock!{self._draw()}")
        state.access[pair.access] = wall_s + spec.access_s
        state.refresh, state.refreshed_at_s = pair.refresh, wall_s
        return pair

    def _draw(self) -> str:
        self.state.issued += 1
        return f"{self._rng.getrandbits(192):048x}"
