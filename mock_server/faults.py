"""Faults: which call is hit by what."""

import random

from mock_server.scenario import Endpoint, FaultSpec


class ConnectionDroppedError(Exception):
    """The connection ends here.

    Over a socket the server closes it; in process there is no connection, so it leaves the application and
    the test's transport makes of it what a real one would raise.
    """


ConnectionDropped = ConnectionDroppedError


class Faults:
    """Chooses calls by counting them, or by chance from a stream of each company's own."""

    def __init__(self, specs: tuple[FaultSpec, ...], *, seed: int) -> None:
        """Start counting at 1."""
        self._specs = specs
        self._seed = seed
        self._counts = [0] * len(specs)
        self._streams: dict[tuple[int, int], random.Random] = {}

    def pick(self, company: int, endpoint: Endpoint) -> FaultSpec | None:
        """Count a call and return what hits it; of several faults the first listed."""
        hit: FaultSpec | None = None
        for place, spec in enumerate(self._specs):
            if spec.company not in {None, company} or spec.endpoint not in {None, endpoint}:
                continue
            self._counts[place] += 1
            if self._strikes(place, company) and hit is None:
                hit = spec
        return hit

    def _strikes(self, place: int, company: int) -> bool:
        spec, number = self._specs[place], self._counts[place]
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
