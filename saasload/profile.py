"""Platform profiles: what one API allows, as checked data."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, model_validator

from saasload.errors import ConfigError
from saasload.names import nearest

Mode = Literal["insert", "batch", "xml"]
Seconds = Annotated[float, Field(gt=0)]


class Strict(BaseModel):
    """Checked data: unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Limit(Strict):
    """One rule of the platform on how much may arrive.

    `sliding` allows `calls` in any `period_s` seconds; `fixed` allows them in each period counted from 00:00 UTC (a
    period of 86400 is the UTC day); `errors` counts only calls that fail, and is kept one short of its number, at
    which the platform blocks. With `cost = "row"` it is rows that count. `endpoint` is a company's mode.
    """

    name: str = ""
    scope: Literal["app", "user", "company", "endpoint"]
    kind: Literal["sliding", "fixed", "errors"] = "sliding"
    calls: PositiveInt
    period_s: Seconds
    cost: Literal["call", "row"] = "call"

    @property
    def label(self) -> str:
        """Its name, or one made of what it is."""
        return self.name or f"{self.scope}-{self.kind}-{self.period_s:g}s"


class LimitHeaders(Strict):
    """The headers by which replies tell of one limit, "" for those that the platform does not send.

    `limit` is the limit's name. `unit` says how the reset is given; `problem` is the value of the platform's problem
    header that means this limit.
    """

    limit: str
    limit_header: str = ""
    remaining_header: str = ""
    reset_header: str = ""
    unit: Literal["guess", "seconds", "epoch_s", "epoch_ms"] = "guess"
    problem: str = ""


class BusinessError(Strict):
    """A text by which an answer is known as the row's fault, whatever its HTTP status."""

    text: str = Field(min_length=3)
    """A part of the message, in any case."""
    reason: str


class Answers(Strict):
    """How this platform's answers are to be understood; `answers.py` has the table.

    A status in `executed_unless_retry_after` counts as not executed only with a Retry-After: without one it may
    come from something in front of the platform, which had passed the call on. `created`, `updated` and
    `unchanged` are the words in an XML success message.
    """

    not_executed: tuple[int, ...] = (429, 503)
    executed_unless_retry_after: tuple[int, ...] = (503,)
    sign_in: tuple[int, ...] = (401,)
    company_closed: tuple[int, ...] = (403,)
    absent: tuple[int, ...] = (404, 405, 410, 501)
    too_large: tuple[int, ...] = (413,)
    absent_texts: tuple[str, ...] = ()
    business_errors: tuple[BusinessError, ...] = ()
    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    def says_absent(self, text: str) -> bool:
        """Whether a text says that there is no such way to send, whatever its status."""
        folded = text.casefold()
        return any(known.casefold() in folded for known in self.absent_texts)

    def business(self, text: str) -> str | None:
        """Return the reason a known business text stands for, or None."""
        folded = text.casefold()
        return next((known.reason for known in self.business_errors if known.text.casefold() in folded), None)


class FieldSpec(Strict):
    """One field of an entity: its type, and where it goes in each wire format.

    `max_length` counts UTF-16 units; `pad_left` is the width the platform keeps the
    value at; `xml` is the path below the row's element (`@code`, `Name`, `Language/@code`),
    None for a field that XML does not carry.
    """

    type: Literal["text", "integer", "decimal", "date", "datetime", "bool", "guid"] = "text"
    required: bool = False
    max_length: PositiveInt | None = None
    pad_left: PositiveInt | None = None
    xml: str | None = None


class Pace(Strict):
    """How long a call takes there, as far as is known: `call_s + row_s * rows` seconds, when nobody waits."""

    call_s: Annotated[float, Field(ge=0)]
    row_s: Annotated[float, Field(ge=0)] = 0.0


class InsertSpec(Strict):
    """One POST a row."""

    path: str
    max_bytes: PositiveInt = 1_000_000
    pace: Pace | None = None


class BatchSpec(Strict):
    """OData `$batch`: `change_set` says how many rows stand or fall together."""

    path: str
    part_path: str
    max_rows: PositiveInt = 250
    max_bytes: PositiveInt = 4_000_000
    change_set: Literal["row", "call"] = "row"
    pace: Pace | None = None


class XmlSpec(Strict):
    """Chunked XML upload: `attributes` are fixed attributes by element path."""

    path: str
    root: str
    schema_location: str
    topic: str
    element: str
    max_rows: PositiveInt = 100
    max_bytes: PositiveInt = 1_000_000
    attributes: Mapping[str, Mapping[str, str]] = {}
    pace: Pace | None = None


class LookUpSpec(Strict):
    """How rows in doubt are read back by their natural key.

    `path` has the places {company}, {select} and {filter}. `quiet_s` is how long after a lost answer the platform
    may still be storing the row: nothing is asked before, for "not there" would not mean "not coming".
    """

    path: str
    max_keys: PositiveInt = 40
    max_url_bytes: PositiveInt = 2000
    quiet_s: Seconds = 30.0


DoubtRule = Literal["look-up", "resend"]


class EntitySpec(Strict):
    """What a row becomes there, and the ways it can travel, cheapest first.

    With `ordering = "strict"` a company's calls follow each other whatever is asked for. `in_doubt` says, by
    mode, what makes a row in doubt known again: a look-up by key, or the same call once more where it creates or
    updates by key; without a rule the row stays in doubt.
    """

    modes: tuple[Mode, ...] = Field(min_length=1)
    key: str
    fields: Mapping[str, FieldSpec]
    insert: InsertSpec | None = None
    batch: BatchSpec | None = None
    xml: XmlSpec | None = None
    ordering: Literal["any", "strict"] = "any"
    look_up: LookUpSpec | None = None
    in_doubt: Mapping[Mode, DoubtRule] = {}

    @model_validator(mode="after")
    def _consistent(self) -> "EntitySpec":
        for mode in self.modes:
            if getattr(self, mode) is None:
                message = f"mode {mode} is listed in modes but has no [{mode}] table"
                raise ValueError(message)
        if "look-up" in self.in_doubt.values() and self.look_up is None:
            message = "in_doubt says look-up, but there is no [look_up] table"
            raise ValueError(message)
        if self.key not in self.fields:
            message = f"key {self.key} is not one of the fields"
            raise ValueError(message)
        return self


class CompaniesSpec(Strict):
    """Where the platform lists its companies: a verbose JSON collection with `__next` paging."""

    path: str
    code: str = "Code"


class CsrfSpec(Strict):
    """A token against forgery that each call which changes something has to carry.

    A GET of `path` with `fetch` in the `header` is answered with a token in that header, and with the cookies it
    belongs to; both are a company's own. A call without a valid one comes back with a status of `refused` and with
    `required` in the header, and was not executed.
    """

    path: str
    header: str = Field("x-csrf-token", pattern=r"^[A-Za-z0-9-]+$")
    fetch: str = "Fetch"
    required: str = "Required"
    refused: tuple[int, ...] = (403,)
    deadline_s: Seconds = 30.0


class RetrySpec(Strict):
    """When a call that was certainly not executed is sent again: full-jitter back-off."""

    base_s: Seconds = 1.0
    cap_s: Seconds = 60.0
    attempts: PositiveInt = 8


class PlatformProfile(Strict):
    """What one platform's API allows."""

    name: str
    title: str = ""
    token_env: str = "SAASLOAD_TOKEN"  # noqa: S105 the name of a variable, not a token
    practice_token: str | None = None
    time_scale_header: str | None = None
    slots: PositiveInt | None = None
    """How many calls the platform serves at once, all companies together, where that is known: for forecasts."""
    parallel_hint: PositiveInt | None = None
    parallel_header: str = ""
    """Where an adaptive load starts: a number, or the header of a reply that states one."""
    keepalive_s: Seconds = 4.0
    deadline_s: Seconds = 120.0
    json_decimal: Literal["string", "number"] = "string"
    headers: Mapping[str, str] = {}
    companies: CompaniesSpec
    limits: tuple[Limit, ...] = ()
    limit_headers: tuple[LimitHeaders, ...] = ()
    problem_header: str = ""
    retry: RetrySpec = RetrySpec()
    answers: Answers = Answers()
    csrf: CsrfSpec | None = None
    entities: Mapping[str, EntitySpec]

    @model_validator(mode="after")
    def _limits_named(self) -> "PlatformProfile":
        names = [limit.label for limit in self.limits]
        if len(set(names)) < len(names):
            message = f"limits: two are called {next(name for name in names if names.count(name) > 1)}"
            raise ValueError(message)
        for headers in self.limit_headers:
            if names and headers.limit not in names:
                message = f"limit_headers: {headers.limit} is no limit; {nearest(headers.limit, names)}"
                raise ValueError(message)
        return self

    def entity(self, name: str) -> EntitySpec:
        """Find an entity; ConfigError with the nearest name where there is none."""
        if name not in self.entities:
            message = f"entity {name}: not in profile {self.name}; {nearest(name, self.entities)}"
            raise ConfigError(message)
        return self.entities[name]


def config_folder() -> Path:
    """Return the folder of shipped configuration: beside the package in a wheel, above it in a checkout."""
    inside = Path(__file__).parent / "configs"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "configs"


def profile_names() -> list[str]:
    """List the profiles that are shipped."""
    return sorted(path.stem for path in (config_folder() / "platforms").glob("*.toml"))


def load_profile(name: str) -> PlatformProfile:
    """Load a shipped profile by name, or a profile file by its path (one that ends in .toml).

    Raises ConfigError with the file and the key that is wrong.
    """
    if name.endswith(".toml"):
        path = Path(name)
    else:
        path = config_folder() / "platforms" / f"{name}.toml"
        if not path.is_file():
            message = f"profile {name}: not known; {nearest(name, profile_names())}"
            raise ConfigError(message)
    data = _read(path)
    try:
        return PlatformProfile.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_explain(path, error)) from error


def _read(path: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Read a profile file with what it `extends`, tables merged key by key."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        message = f"profile {path}: no such file"
        raise ConfigError(message) from error
    except OSError as error:
        message = f"profile {path}: cannot be read: {(error.strerror or str(error)).lower()}"
        raise ConfigError(message) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{path}: not valid TOML: {error}"
        raise ConfigError(message) from error
    base = data.pop("extends", None)
    if base is None:
        return data
    if not isinstance(base, str) or path in seen:
        message = f"{path}: extends {base}: must name another profile, and not come round to itself"
        raise ConfigError(message)
    folders = (path.parent, config_folder() / "platforms")
    found = next((file for folder in folders if (file := folder / f"{base}.toml").is_file() and file != path), None)
    if found is None:
        message = f"{path}: extends {base}, which is neither beside it nor shipped; {nearest(base, profile_names())}"
        raise ConfigError(message)
    return _merged(_read(found, (*seen, path)), data)


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = _merged(result[key], value) if both else value
    return result


def _explain(path: Path, error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    message = first["msg"].removeprefix("Value error, ")
    return f"{path.name}: {place}: {message[:1].lower()}{message[1:]}{more}"
