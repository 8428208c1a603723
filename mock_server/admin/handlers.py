"""Handlers: the answers to the admin's questions."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import anyio
import orjson
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from mock_server.admin.guard import as_json, fault
from mock_server.admin.metrics import metrics
from mock_server.admin.snapshot import Snapshots
from mock_server.entities import ACCOUNT, SETS, Entity
from mock_server.faults import LiveFault
from mock_server.scenario import FaultSpec, ScenarioError, check_scenario, load_scenario, scenario_names
from mock_server.scenario.checks import find_overlap
from mock_server.world import CallLine, World

_CALL = ("at_s", "company", "endpoint", "rows", "status", "took_s")
_TICK_S = 0.5
_SCALES = (0.001, 1e6)


class BadQuestionError(Exception):
    """A parameter or a body cannot be understood; the text says why."""


class Handlers:
    """Answers over one world; one method an operation."""

    def __init__(self, world: World) -> None:
        """Answer about a world."""
        self._world = world

    async def health(self, _: Request) -> Response:
        """Say that it is up."""
        world = self._world
        return as_json({"status": "ok", "scenario": world.scenario.name, "time_scale": world.clock.scale})

    async def stats(self, _: Request) -> Response:
        """Count what came in."""
        return as_json(self._world.stats())

    async def audit(self, request: Request) -> Response:
        """Count what is booked."""
        entity = _entity(request)
        if entity is None:
            return fault(f"entity: there are {', '.join(sorted(SETS))}")
        return as_json(self._world.audit(request.query_params.get("key", "Code"), entity))

    async def rows(self, request: Request) -> Response:
        """List a company's codes."""
        entity = _entity(request)
        if entity is None:
            return fault(f"entity: there are {', '.join(sorted(SETS))}")
        company = request.query_params.get("company", "")
        number = int(company) if company.isdecimal() and len(company) < 10 else 0
        self._world.settle()
        book = self._world.ledger.books(entity).get(number)
        codes = [] if book is None else [book.codes[place] for place in book.numbers()]
        return as_json({"company": number, "codes": codes})

    async def calls(self, request: Request) -> Response:
        """List the last calls."""
        given = request.query_params
        try:
            keep = _Filter(
                company=_whole(given.get("company")), endpoint=given.get("endpoint"),
                status=_whole(given.get("status")), since_s=_seconds(given.get("since")),
            )  # fmt: skip
            last = _whole(given.get("last"))
        except BadQuestionError as error:
            return fault(str(error))
        found = [call for call in self._world.calls if keep(call)]
        found = found[-last:] if last else (found[-1000:] if last is None else [])
        lines = [orjson.dumps(dict(zip(_CALL, call, strict=True))) for call in found]
        return Response(b"\n".join([*lines, b""]), media_type="application/x-ndjson")

    async def reset(self, _: Request) -> Response:
        """Empty everything."""
        self._world.reset()
        return as_json({"status": "reset"})

    async def scenario(self, _: Request) -> Response:
        """Return what is played."""
        return as_json(self._world.scenario.model_dump(mode="json"))

    async def play(self, request: Request) -> Response:
        """Play another scenario."""
        name = request.query_params.get("name")
        try:
            if name is None:
                scenario = check_scenario(await _object(request), source="scenario")
            elif name in scenario_names():
                scenario = load_scenario(name)
            else:
                return fault(f"name: there are {', '.join(scenario_names())}")
        except (BadQuestionError, ScenarioError) as error:
            return fault(str(error))
        self._world.play(scenario)
        return as_json({"status": "playing", "scenario": scenario.name})

    async def faults(self, _: Request) -> Response:
        """List the faults."""
        return as_json([_shown(place, live) for place, live in enumerate(self._world.faults.live)])

    async def add_fault(self, request: Request) -> Response:
        """Add a fault."""
        try:
            spec = FaultSpec.model_validate(await _object(request))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return fault(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        except BadQuestionError as error:
            return fault(str(error))
        live = self._world.faults.live
        overlap = find_overlap(_running(live), spec) if spec.on else ""
        if overlap:
            return fault(overlap, 409)
        live.append(LiveFault(spec, spec.on))
        return as_json(_shown(len(live) - 1, live[-1]))

    async def switch_fault(self, request: Request) -> Response:
        """Switch a fault on or off."""
        place, live = str(request.path_params["place"]), self._world.faults.live
        if not (place.isdecimal() and len(place) < 10 and int(place) < len(live)):
            return fault("there is no such fault", 404)
        try:
            on = (await _object(request)).get("on")
        except BadQuestionError as error:
            return fault(str(error))
        if not isinstance(on, bool):
            return fault("on: should be true or false")
        one = live[int(place)]
        others = [(number, spec) for number, spec in _running(live) if number != int(place)]
        overlap = find_overlap(others, one.spec) if on else ""
        if overlap:
            return fault(overlap, 409)
        one.on = on
        return as_json(_shown(int(place), one))

    async def clock(self, _: Request) -> Response:
        """Tell the time."""
        clock = self._world.clock
        return as_json({"time_scale": clock.scale, "now_s": clock.now_s(), "wall_s": clock.wall_s()})

    async def set_clock(self, request: Request) -> Response:
        """Run faster or slower."""
        try:
            scale = (await _object(request)).get("time_scale")
        except BadQuestionError as error:
            return fault(str(error))
        if not isinstance(scale, int | float) or isinstance(scale, bool) or not _SCALES[0] <= scale <= _SCALES[1]:
            return fault("time_scale: should be from 0.001 to 1000000")
        self._world.clock.set_scale(float(scale))
        return await self.clock(request)

    async def metrics(self, _: Request) -> Response:
        """Give all counters."""
        return Response(metrics(self._world), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def events(self, _: Request) -> Response:
        """Send a snapshot twice a second, for as long as somebody listens."""
        snapshots = Snapshots(self._world)

        async def stream() -> AsyncIterator[bytes]:
            while True:
                yield b"data: " + orjson.dumps(snapshots.take()) + b"\n\n"
                await anyio.sleep(_TICK_S)

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-cache"})


class _Filter:
    """Says of a call whether it was asked for."""

    def __init__(self, *, company: int | None, endpoint: str | None, status: int | None, since_s: float) -> None:
        self._company = company
        self._endpoint = endpoint
        self._status = status
        self._since_s = since_s

    def __call__(self, call: CallLine) -> bool:
        at_s, company, endpoint, _, status, _ = call
        return (
            at_s >= self._since_s
            and self._company in {None, company}
            and self._endpoint in {None, endpoint}
            and self._status in {None, status}
        )


def _running(live: list[LiveFault]) -> list[tuple[int, FaultSpec]]:
    return [(place, one.spec) for place, one in enumerate(live) if one.on]


def _shown(place: int, live: LiveFault) -> dict[str, Any]:
    spec = live.spec.model_dump(mode="json", exclude_defaults=True, exclude={"on"})
    return {"place": place, **asdict(live), "spec": spec}


def _entity(request: Request) -> Entity | None:
    return SETS.get(request.query_params.get("entity", ACCOUNT.set))


async def _object(request: Request) -> dict[str, Any]:
    """Read a body that is a JSON object."""
    try:
        found = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise BadQuestionError(f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadQuestionError("the body is not an object")
    return found


def _whole(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 9:
        raise BadQuestionError(f"{text[:40]!r} is not a whole number")
    return int(text)


def _seconds(text: str | None) -> float:
    try:
        return float(text or 0.0)
    except ValueError as error:
        raise BadQuestionError(f"{(text or '')[:40]!r} is not a number of seconds") from error
