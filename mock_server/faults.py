"""Faults: which call is hit by what."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from mock_server.scenario import Endpoint, FaultSpec


class ConnectionDroppedError(Exception):
    """The connection ends here.

    Over a socket the server closes it; in process there is no connection, so it leaves the application and
    the test's transport makes of it what a real one would raise.
    """


ConnectionDropped = ConnectionDroppedError


@dataclass(slots=True)
class LiveFault:
    """A fault at work: switched on or off, with the calls that it matched and those that it hit."""

    spec: FaultSpec
    on: bool
    seen: int = 0
    hits: int = 0


class Faults:
    """Chooses calls by counting them, or by chance from a stream of each company's own."""

    def __init__(self, specs: Iterable[FaultSpec], *, seed: int) -> None:
        """Start counting at 1."""
        self._seed = seed
        self._streams: dict[tuple[int, int], random.Random] = {}
        self.live = [LiveFault(spec, spec.on) for spec in specs]

    def pick(self, company: int, endpoint: Endpoint, now_s: float = 0.0) -> FaultSpec | None:
        """Count a call and return what hits it; of several faults the first listed."""
        hit: FaultSpec | None = None
        for place, live in enumerate(self.live):
            spec = live.spec
            if not live.on or spec.company not in {None, company} or not _travels(spec, endpoint):
                continue
            if now_s < spec.at_s or (spec.for_s is not None and now_s >= spec.at_s + spec.for_s):
                continue
            live.seen += 1
            if self._strikes(place, live, company) and hit is None:
                hit = spec
                live.hits += 1
        return hit

    def _strikes(self, place: int, live: LiveFault, company: int) -> bool:
        spec, number = live.spec, live.seen
        chance = bool(spec.probability) and self._stream(place, company).random() < spec.probability
        if number < spec.first or (spec.last is not None and number > spec.last):
            return False
        if not spec.every and not spec.probability:
            return True
        return chance or bool(spec.every and number % spec.every == 0)

    def _stream(self, place: int, company: int) -> random.Random:
        key = (place, company)
        if key not in self._streams:
            seed = f"{self._seed}:fault:{place}:{company}"
            self._streams[key] = random.Random(seed)  # noqa: S311 - a simulation
        return self._streams[key]


def _travels(spec: FaultSpec, endpoint: Endpoint) -> bool:
    """Say whether a fault is one for calls that travel so."""
    return endpoint == "xml" if spec.kind.startswith("xml-") else spec.endpoint in {None, endpoint}
