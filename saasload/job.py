"""What one load is: checked arguments, whoever gave them."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, NonNegativeInt, PositiveInt, SecretStr, ValidationError

from saasload.errors import UsageError
from saasload.names import nearest
from saasload.profile import Mode, Seconds, Strict

AUTO_CEILING = 128
"""The most connections an adaptive load may need: more than any published platform serves at once."""

PAST_A_DAY_S = 25 * 3600.0
WITHIN_A_DAY_S = 3600.0

EMBEDDED = "embedded"
"""The target that saasload starts by itself: a mock server of its own."""


class Job(Strict):
    """One load.

    `to` is the target's address, or `embedded`. `companies` picks companies: all, a list, @file or a query;
    `partitions` takes the first so many of them. `fields` maps entity fields to source columns of another name.
    Times are in seconds of the target's time.
    """

    source: Path
    format: Literal["parquet", "csv"] | None = None
    to: str = EMBEDDED
    profile: str = "mock"
    entity: str = "Account"
    mode: Mode | None = None
    companies: str = "all"
    partitions: PositiveInt | None = None
    partition_by: str | None = None
    fields: Mapping[str, str] = {}
    parallel: PositiveInt | Literal["auto"] = "auto"
    per_company: PositiveInt = 1
    rows_per_call: PositiveInt | None = None
    bytes_per_call: PositiveInt | None = None
    order: Literal["longest", "fifo", "fair"] = "longest"
    deadline_s: Seconds | None = None
    wait_for_day: Literal["yes", "no"] = "yes"
    max_wait_s: Seconds | None = None
    drain_s: Seconds = 30.0
    max_errors: str | None = Field(default=None, pattern=r"^[0-9]+%?$")
    time_scale: Seconds | None = None
    seed: NonNegativeInt | None = None
    token: SecretStr | None = None
    token_file: Path | None = None
    budget_dir: str | None = None
    runs: Path = Field(default=Path(".saasload/runs"))
    run: str | None = None

    def facts(self) -> dict[str, object]:
        """Write it as plain data, without the token; what is relative to the current folder is made absolute."""
        token_file = None if self.token_file is None else self.token_file.absolute()
        placed = self.model_copy(update={"source": self.source.absolute(), "token_file": token_file, "token": None})
        return placed.model_dump(mode="json", exclude_none=True)

    @property
    def longest_wait_s(self) -> float:
        """For how long nothing may be sent before the run ends: past a day limit's reset, unless told otherwise."""
        if self.max_wait_s is not None:
            return self.max_wait_s
        return PAST_A_DAY_S if self.wait_for_day == "yes" else WITHIN_A_DAY_S

    @property
    def budget_place(self) -> str:
        """Where processes share the budget: a folder beside the runs, unless told; memory for a mock of our own."""
        if self.budget_dir is not None:
            return self.budget_dir
        return "" if self.to == EMBEDDED else str(self.runs.absolute().parent / "budgets")

    @property
    def connections(self) -> int:
        """How many connections its calls may need."""
        return AUTO_CEILING if self.parallel == "auto" else self.parallel

    def max_rejected(self, rows: int) -> float:
        """Say how many of so many rows may be rejected before the run stops."""
        if self.max_errors is None:
            return math.inf
        if self.max_errors.endswith("%"):
            return rows * int(self.max_errors[:-1]) / 100.0
        return int(self.max_errors)


def make_job(**arguments: object) -> Job:
    """Check arguments and make a job of them; UsageError names the first that cannot be."""
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        return Job.model_validate(given)
    except ValidationError as error:
        raise UsageError(_complaint(error, given)) from error


def _complaint(error: ValidationError, given: Mapping[str, object]) -> str:
    """Put the first thing that is wrong into one line; a token's value is not repeated."""
    first = error.errors(include_input=False, include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "job"
    value = "" if name == "token" else f" {given.get(name)}"
    if name == "mode":
        return f"{option_name(name)}{value}: {nearest(str(given[name]), get_args(Mode))}"
    if name == "max_errors":
        return f"{option_name(name)}{value}: must be a number of rows, or a percentage such as 5%"
    message = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{option_name(name)}{value}: must be {message}"


def option_name(name: str) -> str:
    """Name an argument as the command line does.

    >>> option_name("per_company")
    '--per-company'
    """
    return "--field" if name == "fields" else "--" + name.replace("_", "-")
