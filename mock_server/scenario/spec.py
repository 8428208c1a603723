"""What a scenario may say. Every key is described in docs/mock-server.md, and a test compares the two."""

from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

Endpoint = Literal["insert", "batch", "xml", "read"]
"""The ways a call travels, as latency and faults tell them apart."""

FaultKind = Literal[
    "drop-before", "drop-after", "status", "html-200", "empty", "cut", "late-commit", "slow", "xml-fatal", "xml-no-data"
]

BatchMode = Literal["off", "atomic-change-sets", "half-applied", "continue-on-error"]

JitterKind = Literal["constant", "uniform", "log-normal", "pareto"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Cost(_Strict):
    """Service time of a call: `call_s + row_s * rows`, in mock seconds."""

    call_s: NonNegativeFloat = 0.0
    row_s: NonNegativeFloat = 0.0
    unchanged_row_s: NonNegativeFloat | None = None
    """What a row costs that changes nothing; `row_s` where it is not given."""


class JitterSpec(_Strict):
    """By which factor a call takes longer or shorter than another of the same size."""

    kind: JitterKind
    low: PositiveFloat = 0.5
    """`uniform`: the lowest factor. `pareto`: the same, which is also the most frequent one."""
    high: PositiveFloat = 1.5
    """`uniform`: the highest factor."""
    median: PositiveFloat = 1.0
    """`log-normal`: half of the calls take less."""
    p99: PositiveFloat = 2.0
    """`log-normal`: one call in a hundred takes more."""
    alpha: Annotated[float, Field(gt=1.0)] = 2.5
    """`pareto`: the tail's exponent; the nearer to 1, the heavier."""
    cap: PositiveFloat = 1000.0
    """No factor is higher."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.high < self.low or self.p99 < self.median:
            raise ValueError("high is not below low, nor p99 below median")
        return self


class SpreadSpec(_Strict):
    """How much companies differ: a factor for each, drawn log-normally from the seed."""

    median: PositiveFloat = 1.0
    p99: PositiveFloat = 3.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.p99 < self.median:
            raise ValueError("p99 is not below median")
        return self


class LatencySpec(_Strict):
    """How long calls take, and who waits for whom."""

    slots: PositiveInt = 8
    """Calls in service at once, all companies together."""
    per_company: PositiveInt = 1
    """Calls in service at once in one company."""
    busy_coef: NonNegativeFloat = 0.0
    """Contention: slower by so much for each other call in service (alpha of the scalability law)."""
    coherency_coef: NonNegativeFloat = 0.0
    """Coherency: slower by so much for each pair of calls in service (beta of the scalability law)."""
    wait_coef: NonNegativeFloat = 0.0
    """Slower by so much for each doubling of the calls that wait for a slot."""
    jitter_sigma: NonNegativeFloat = 0.0
    """Sigma of a log-normal jitter of mean 1; the short form of `jitter`."""
    jitter: JitterSpec | None = None
    by_company: SpreadSpec | None = None
    """How much the companies differ."""
    read_s: NonNegativeFloat = 0.0
    """What a read takes. Reads stand outside the company's lock and the slots."""
    insert: Cost = Cost()
    batch: Cost = Cost()
    xml: Cost = Cost()

    @model_validator(mode="after")
    def _one_jitter(self) -> Self:
        if self.jitter is not None and self.jitter_sigma:
            raise ValueError("jitter and jitter_sigma exclude each other")
        return self


class SlowdownSpec(_Strict):
    """A time during which calls take longer."""

    at_s: NonNegativeFloat
    """When it begins, in mock seconds since the start."""
    factor: PositiveFloat
    for_s: PositiveFloat | None = None
    """How long it lasts; to the end where it is not given."""
    company: int | None = None
    """The company that it hits; all where it is not given."""


class OAuthSpec(_Strict):
    """Tokens that expire, in place of the one that always works."""

    client_id: str = "mock-client"
    client_secret: str = "mock-secret"  # noqa: S105 - public: it opens nothing but the mock
    redirect_uris: tuple[str, ...] = ()
    """Where a code may be sent; empty takes any https address and this machine."""
    access_s: PositiveFloat = 600.0
    earliest_refresh_s: NonNegativeFloat = 570.0
    """A refresh sooner than this after the last is refused."""
    refresh_days: PositiveFloat = 30.0
    code_s: PositiveFloat = 180.0
    tokens_per_day: PositiveInt = 200
    reuse_kills: bool = True
    """Whether an old refresh token ends the connection until somebody signs in again."""


class CsrfSpec(_Strict):
    """A token against forgery that each call which changes something has to show."""

    lasts_s: NonNegativeFloat = 1800.0
    """How long it opens, in mock seconds; 0 is a target that takes none."""
    lasts_calls: NonNegativeInt = 0
    """For how many calls; 0 for as many as come."""


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
    on: bool = True
    """False: waits to be switched on at run time."""
    every: NonNegativeInt = 0
    """Hit each n-th call that matches."""
    probability: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Or hit a call by chance, from a stream of the company's own."""
    company: int | None = None
    endpoint: Endpoint | None = None
    first: PositiveInt = 1
    """Number of the first matching call that may be hit, counted from 1."""
    last: PositiveInt | None = None
    at_s: NonNegativeFloat = 0.0
    """Mock second from which on it may hit."""
    for_s: PositiveFloat | None = None
    """For how long it may hit; to the end where it is not given."""
    status: Annotated[int, Field(ge=400, le=599)] = 503
    retry_after_s: NonNegativeInt | None = None
    after_s: NonNegativeFloat = 5.0
    """`slow`: extra service time. `late-commit`: from arrival to commit."""
    hold_s: NonNegativeFloat = 0.0
    """How long a connection stays open before it is dropped."""


class CompanySpec(_Strict):
    """How one company differs from the others."""

    name: str | None = None
    """What it is called, whatever was drawn."""
    slower: PositiveFloat | None = None
    """Its calls take so many times as long, whatever `by_company` drew."""
    per_company: PositiveInt | None = None
    calls_per_minute: PositiveInt | None = None
    calls_per_day: PositiveInt | None = None


class Scenario(_Strict):
    """Everything the mock plays."""

    name: str = "unnamed"
    description: str = ""
    seed: int = 7
    token: str = "mock-token"  # noqa: S105 - public: it opens nothing but the mock
    companies: Annotated[int, Field(gt=0, le=100_000)] = 100
    first_company: Annotated[int, Field(gt=0, le=900_000_000)] = 1001
    archived: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Companies listed beyond the others with another status than 1; calls to them get 403."""
    language: Literal["en", "nl"] = "en"
    xml_root: str = ""
    """Name of the root element of an upload; empty takes any. The reply has the root of the request."""
    batch: BatchMode = "atomic-change-sets"
    max_batch_parts: PositiveInt = 250
    max_rows_per_upload: PositiveInt = 1000
    max_body_bytes: PositiveInt = 16 * 2**20
    page_rows: PositiveInt = 60
    bulk_page_rows: PositiveInt = 1000
    unique_code: bool = True
    """False lets a second POST of a code through, so that an audit can see it."""
    mandatory_status: Literal[400, 500] = 400
    """What a missing field and an entry out of balance are answered with."""
    check_references: bool = True
    """False books rows that refer to what is not there."""
    filter_needed: bool = False
    """True refuses a list that is neither filtered nor cut with `$top`."""
    oauth: OAuthSpec | None = None
    csrf: CsrfSpec | None = None
    limits: LimitSpec | None = None
    latency: LatencySpec = LatencySpec()
    company: dict[int, CompanySpec] = {}
    slowdowns: tuple[SlowdownSpec, ...] = ()
    faults: tuple[FaultSpec, ...] = ()
