"""What an experiment consists of: checked arguments, and the runs that follow from them."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, NonNegativeInt, PositiveInt, SecretStr, ValidationError

from saasload.errors import UsageError
from saasload.experiments.loads import Load
from saasload.job import option_name
from saasload.names import nearest
from saasload.profile import Mode, Seconds, Strict

LEVELS = (1, 2, 4, 6, 8, 10, 12, 16, 32, 64, 100)
CLOCKS = ("virtual", "real")
MOST_PARALLEL = 10_000
CALLS_A_COMPANY = 4
"""In modes that put rows together, a company's rows go in four calls unless told otherwise: as published."""


class CurvePlan(Strict):
    """One curve: which levels and modes, how much work in each, where and on which clock.

    Every level does the same work a company. `scenario` is what the mock plays; `to` is another target, which needs
    the real clock. `profile` without a value is the mock's, with limits where the scenario has them.
    """

    parallel: tuple[PositiveInt, ...] = LEVELS
    modes: tuple[Mode, ...] = ("insert", "batch", "xml")
    companies: PositiveInt = 100
    rows: PositiveInt = 100
    repeats: PositiveInt = 5
    rows_per_call: PositiveInt | None = None
    scenario: str = "seeds"
    clock: Literal["virtual", "real"] = "virtual"
    to: str | None = None
    profile: str | None = None
    time_scale: Seconds = 50.0
    seed: NonNegativeInt = 1
    workers: PositiveInt = Field(default=1)
    token: SecretStr | None = None

    def rows_a_call(self, mode: Mode) -> int:
        """How many rows travel in a call."""
        if mode == "insert":
            return 1
        return self.rows_per_call or max(1, -(-self.rows // CALLS_A_COMPANY))

    @property
    def total_rows(self) -> int:
        """Rows over all runs."""
        return len(self.parallel) * len(self.modes) * self.repeats * self.companies * self.rows


def make_plan(**arguments: object) -> CurvePlan:
    """Check arguments; UsageError names the first that cannot be. None stands for not given."""
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        plan = CurvePlan.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "plan"
        if name == "clock":
            raise UsageError(f"--clock {given[name]}: {nearest(str(given[name]), CLOCKS)}") from error
        reason = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
        value = "" if name == "token" else f" {given.get(name)}"
        raise UsageError(f"{option_name(name)}{value}: must be {reason}") from error
    if plan.to is not None and plan.clock == "virtual":
        message = f"--to {plan.to}: a target of its own keeps its own time; add --clock real"
        raise UsageError(message)
    return plan


def parse_levels(text: str) -> tuple[int, ...]:
    """Read `--parallel`: whole numbers of at least 1, by commas; each counts once, the smallest first.

    >>> parse_levels("8,1, 2,8")
    (1, 2, 8)
    """
    levels = set()
    for word in text.split(","):
        word = word.strip()  # noqa: PLW2901 the bare word is what is wrong or right
        if not word.isdecimal() or not 1 <= int(word) <= MOST_PARALLEL:
            message = (
                f"--parallel {text}: {word or 'nothing'} between commas is no whole number from 1 to {MOST_PARALLEL:,}"
            )
            raise UsageError(message)
        levels.add(int(word))
    return tuple(sorted(levels))


def parse_modes(text: str) -> tuple[Mode, ...]:
    """Read `--mode`: ways to travel by commas, each once, in the order given."""
    known: tuple[Mode, ...] = get_args(Mode)
    modes: list[Mode] = []
    for word in text.split(","):
        mode = next((mode for mode in known if mode == word.strip()), None)
        if mode is None:
            message = f"--mode {word.strip() or text}: {nearest(word.strip(), known)}"
            raise UsageError(message)
        if mode not in modes:
            modes.append(mode)
    return tuple(modes)


def check_real_target(plan: CurvePlan, *, agreed: Literal["agreed", "not agreed"], row_budget: int | None) -> None:
    """Refuse to load a target that is not the bundled mock unless that is meant, and bounded."""
    if plan.to is None:
        return
    if agreed == "not agreed":
        message = (
            f"--to {plan.to}: this writes {plan.total_rows:,} rows there; add --yes-load-a-real-target if you mean it"
        )
    elif row_budget is None:
        message = f"--to {plan.to}: this writes {plan.total_rows:,} rows there; add --row-budget N with N as large"
    elif plan.total_rows > row_budget:
        message = (
            f"--row-budget {row_budget:,}: this writes {plan.total_rows:,} rows; ask for fewer levels, repeats or rows"
        )
    else:
        return
    raise UsageError(message)


def loads_of(plan: CurvePlan, profile: str) -> list[Load]:
    """List the runs of a plan in the random order they are made in.

    Random, so that a target that slows down while it fills is not read as one that dislikes high levels. Each repeat
    has a seed of its own, the same at all levels: levels then differ by their parallelism alone.
    """
    loads = [
        Load(
            mode=mode, parallel=level, companies=plan.companies, rows=plan.rows * plan.companies,
            rows_per_call=plan.rows_a_call(mode), repeat=repeat, seed=plan.seed + repeat, profile=profile,
        )
        for mode in plan.modes
        for level in plan.parallel
        for repeat in range(plan.repeats)
    ]  # fmt: skip
    random.Random(plan.seed).shuffle(loads)  # noqa: S311 an order, no secret
    return loads


def default_out(name: str) -> Path:
    """Name the folder an experiment is written to."""
    return Path(".saasload") / name


def in_order(loads: Sequence[Load]) -> list[Load]:
    """Put runs in the order people read them."""
    return sorted(loads, key=lambda load: (load.mode, load.parallel, load.repeat))
