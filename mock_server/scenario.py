"""Scenarios: what the mock plays, as checked data."""

import difflib
import tomllib
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

Endpoint = Literal["insert", "batch", "xml", "read"]
"""The ways a call travels, as latency and faults tell them apart."""

FaultKind = Literal["drop-before", "drop-after", "status", "html-200", "empty", "cut", "late-commit", "slow"]


class ScenarioError(Exception):
    """A scenario cannot be used; the text is one line with file, key and reason."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Cost(_Strict):
    """Service time of a call: `call_s + row_s * rows`, in mock seconds."""

    call_s: NonNegativeFloat = 0.0
    row_s: NonNegativeFloat = 0.0
    unchanged_row_s: NonNegativeFloat | None = None
    """What a row costs that changes nothing; `row_s` where it is not given."""


class LatencySpec(_Strict):
    """How long calls take, and who waits for whom."""

    slots: PositiveInt = 8
    """Calls in service at once, all companies together."""
    per_company: PositiveInt = 1
    """Calls in service at once in one company."""
    busy_coef: NonNegativeFloat = 0.0
    """Slower by so much for each other call in service."""
    wait_coef: NonNegativeFloat = 0.0
    """Slower by so much for each doubling of the calls that wait for a slot."""
    jitter_sigma: NonNegativeFloat = 0.0
    """Sigma of the log-normal jitter; its mean is 1."""
    read_s: NonNegativeFloat = 0.0
    """What a read takes. Reads stand outside the company's lock and the slots."""
    insert: Cost = Cost()
    batch: Cost = Cost()
    xml: Cost = Cost()


class LimitSpec(_Strict):
    """What a company may ask for."""

    calls_per_minute: PositiveInt = 60
    calls_per_day: PositiveInt = 5000
    errors_per_hour: NonNegativeInt = 0
    """So many 400/401/403/404 an hour, company and endpoint block that endpoint for an hour; 0 = never."""
    other_calls_per_minute: NonNegativeInt = 0
    """Calls of another process that shares the budget, charged when a minute begins."""
    retry_after: bool = False
    """Whether a 429 carries Retry-After."""


class FaultSpec(_Strict):
    """Something that goes wrong now and then."""

    kind: FaultKind
    every: NonNegativeInt = 0
    """Hit each n-th call that matches."""
    probability: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Or hit a call by chance, from a stream of the company's own."""
    company: int | None = None
    endpoint: Endpoint | None = None
    first: PositiveInt = 1
    """Number of the first matching call that may be hit, counted from 1."""
    last: PositiveInt | None = None
    status: Annotated[int, Field(ge=400, le=599)] = 503
    retry_after_s: NonNegativeInt | None = None
    after_s: NonNegativeFloat = 5.0
    """`slow`: extra service time. `late-commit`: from arrival to commit."""
    hold_s: NonNegativeFloat = 0.0
    """How long a connection stays open before it is dropped."""


class CompanySpec(_Strict):
    """How one company differs from the others."""

    slower: PositiveFloat = 1.0
    per_company: PositiveInt | None = None
    calls_per_minute: PositiveInt | None = None
    calls_per_day: PositiveInt | None = None


class Scenario(_Strict):
    """Everything the mock plays."""

    name: str = "unnamed"
    description: str = ""
    seed: int = 7
    token: str = "mock-token"  # noqa: S105 - public: it opens nothing but the mock
    companies: PositiveInt = 100
    first_company: PositiveInt = 1001
    archived: NonNegativeInt = 0
    """Companies listed beyond the others with another status than 1; calls to them get 403."""
    language: Literal["en", "nl"] = "en"
    xml_root: str = ""
    """Name of the root element of an upload; empty takes any. The reply has the root of the request."""
    batch: Literal["atomic-change-sets", "off"] = "atomic-change-sets"
    max_batch_parts: PositiveInt = 250
    max_rows_per_upload: PositiveInt = 1000
    max_body_bytes: PositiveInt = 16 * 2**20
    page_rows: PositiveInt = 60
    unique_code: bool = True
    """False lets a second POST of a code through, so that an audit can see it."""
    mandatory_status: Literal[400, 500] = 400
    limits: LimitSpec | None = None
    latency: LatencySpec = LatencySpec()
    company: dict[int, CompanySpec] = {}
    faults: tuple[FaultSpec, ...] = ()


def scenario_folder() -> Path:
    """Return the folder of the scenarios that come along: in a wheel inside the package, else beside it."""
    here = Path(__file__).parent
    inside = here / "configs" / "scenarios"
    return inside if inside.is_dir() else here.parent / "configs" / "scenarios"


def scenario_names() -> tuple[str, ...]:
    """Return the names of the scenarios that come along."""
    return tuple(sorted(path.stem for path in scenario_folder().glob("*.toml")))


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Read a scenario by its name or from a file; raise `ScenarioError` with one line when it is wrong."""
    path = _find(str(name_or_path))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"{path}: cannot be read: {reason}"
        raise ScenarioError(message) from error
    return parse_scenario(text, source=str(path), name=path.stem)


def parse_scenario(text: str, *, source: str, name: str) -> Scenario:
    """Check the text of a scenario; `source` is what messages begin with."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"{source}: not TOML: {error}"
        raise ScenarioError(message) from error
    try:
        return Scenario.model_validate({"name": name, **data})
    except ValidationError as error:
        message = f"{source}: {_explain(error)}"
        raise ScenarioError(message) from error


def _find(name: str) -> Path:
    if name.endswith(".toml") or "/" in name or "\\" in name:
        return Path(name)
    path = scenario_folder() / f"{name}.toml"
    if path.is_file():
        return path
    near = difflib.get_close_matches(name, scenario_names(), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(scenario_names())}"
    message = f"{name}: no such scenario, {hint}"
    raise ScenarioError(message)


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = tuple(first["loc"])
    key = ".".join(str(step) for step in where) or "top level"
    if first["type"] != "extra_forbidden":
        return f"{key}: {first['msg'][:1].lower()}{first['msg'][1:]}"
    fields = _keys_at(where[:-1])
    near = difflib.get_close_matches(str(where[-1]), fields, n=1, cutoff=0.5)
    return f"{key}: unknown key, " + (f"did you mean {near[0]}?" if near else f"there are {', '.join(fields)}")


def _keys_at(where: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the table at `where` may have."""
    model: type[BaseModel] = Scenario
    for step in where:
        field = model.model_fields.get(str(step))
        if field is not None:
            model = _model_in(field.annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in {dict, tuple, Union, UnionType, Annotated}:
        return next((model for arg in get_args(annotation) if (model := _model_in(arg)) is not None), None)
    return None
