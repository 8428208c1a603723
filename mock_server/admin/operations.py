"""Operations: the admin's addresses as data, for its routes and for its description."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mock_server.entities import SETS

Schema = Mapping[str, Any]

TEXT: Schema = MappingProxyType({"type": "string"})
COUNT: Schema = MappingProxyType({"type": "integer", "minimum": 0, "maximum": 999_999_999})
SECONDS: Schema = MappingProxyType({"type": "number", "minimum": 0})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a query or of a path."""

    name: str
    says: str
    schema: Schema = field(default_factory=lambda: TEXT)
    where: str = "query"


@dataclass(frozen=True, slots=True)
class Operation:
    """One address and method: who answers, with what, to which question."""

    method: str
    path: str
    handler: str
    says: str
    parameters: tuple[Parameter, ...] = ()
    body: str = ""
    answers: str = "application/json"
    refusals: tuple[int, ...] = ()


_COMPANY = Parameter("company", "number of a company", COUNT)
_PLACE = Parameter("place", "place of the fault in the list", COUNT, "path")
_ENTITY = Parameter("entity", "set of the rows that are looked at", {"type": "string", "enum": sorted(SETS)})

OPERATIONS = (
    Operation("GET", "/_mock/health", "health", "Say that it is up, and what it plays"),
    Operation("GET", "/_mock/stats", "stats", "Count what came in by company, and what goes on now"),
    Operation(
        "GET", "/_mock/audit", "audit", "Count what is booked: rows, distinct keys, keys booked more than once",
        (Parameter("key", "field that tells rows apart, `Code` where none is named"), _ENTITY), refusals=(400,),
    ),
    Operation("GET", "/_mock/rows", "rows", "List the codes of a company's rows", (_COMPANY, _ENTITY), refusals=(400,)),
    Operation(
        "GET", "/_mock/calls", "calls", "List the last calls, a line of JSON each, oldest first",
        (
            _COMPANY,
            Parameter("endpoint", "way to travel", {"type": "string", "enum": ["insert", "batch", "xml", "read"]}),
            Parameter("status", "status of the answer, 0 for none", COUNT),
            Parameter("since", "mock second of the earliest arrival", SECONDS),
            Parameter("last", "how many at most", COUNT),
        ),
        answers="application/x-ndjson", refusals=(400,),
    ),
    Operation("POST", "/_mock/reset", "reset", "Empty the books, counters and windows"),
    Operation("GET", "/_mock/scenario", "scenario", "Return the scenario that is played"),
    Operation(
        "PUT", "/_mock/scenario", "play", "Play another scenario: the named one, or that of the body",
        (Parameter("name", "name of a scenario"),), body="Scenario", refusals=(400,),
    ),
    Operation("GET", "/_mock/faults", "faults", "List the faults, with the calls that each matched and hit"),
    Operation("POST", "/_mock/faults", "add_fault", "Add a fault", body="Fault", refusals=(400, 409)),
    Operation(
        "PUT", "/_mock/faults/{place}", "switch_fault", "Switch a fault on or off", (_PLACE,), body="Switch",
        refusals=(400, 404, 409),
    ),
    Operation("GET", "/_mock/clock", "clock", "Tell the mock's time"),
    Operation("PUT", "/_mock/clock", "set_clock", "Run faster or slower from now on", body="Pace", refusals=(400,)),
    Operation("GET", "/_mock/metrics", "metrics", "Give all counters as Prometheus reads them", answers="text/plain"),
    Operation("GET", "/metrics", "metrics", "The same, where Prometheus looks for it", answers="text/plain"),
)  # fmt: skip
