"""Run the published load tests again on a virtual clock, and put both figures side by side.

Published: shared facts, seed-measurements section 1: an accounting cloud, one loader, three runs a test.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from saasload.experiments.curve import ModeCurve, mode_curve
from saasload.experiments.loads import Load, Ran
from saasload.experiments.practice import read_scenario
from saasload.experiments.runs import Ground, make_run, make_runs
from saasload.profile import Mode

SCENARIO = "seeds"
PROFILE = "mock-unlimited"
REPEATS = 3
SEED = 1
LEVELS = (1, 2, 4, 6, 8, 10, 12, 16, 32, 64, 100)
KNEE = (7.0, 10.0)
TIME_SCALE = 50.0
AGREE = 0.05


@dataclass(frozen=True, slots=True)
class Test:
    """One published test: its work, its runs in seconds where they are known, and how near we must come."""

    name: str
    statement: str
    mode: Mode
    parallel: int
    companies: int
    rows: int
    rows_per_call: int
    published_s: tuple[float, ...]
    published_rows_per_hour: float | None
    within: float
    times: int = 1
    shape: str = "even"


TESTS = (
    Test("EI1", "REST insert", "insert", 1, 1, 1_000, 1, (267, 261, 300), 13_043, 0.02),
    Test("EB1", "REST bulk insert", "batch", 1, 1, 1_000, 250, (148, 108, 137), 27_481, 0.02),
    Test("EX1", "XML upload", "xml", 1, 1, 1_000, 91, (111, 69, 96), 39_130, 0.02),
    Test("EI10", "REST insert", "insert", 10, 100, 10_000, 1, (), None, 0.0),
    Test("EB10", "REST bulk insert", "batch", 10, 100, 10_000, 25, (168, 175, 181), 204_933, 0.05),
    Test("EX10", "XML upload", "xml", 10, 100, 10_000, 10, (), None, 0.0, shape="eleven"),
    Test("EB32", "REST bulk insert", "batch", 32, 100, 10_000, 25, (198, 179, 182), 193_202, 0.05),
    Test("EB100", "REST bulk insert", "batch", 100, 100, 10_000, 25, (169, 208, 192), 189_806, 0.05),
    Test("EX1 again", "XML upload, unchanged rows", "xml", 1, 1, 1_000, 91, (20, 30), None, 0.05, times=2),
)
"""`published_s` of the last is a range, "20 to 30 s", and not two runs."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One test, published and reproduced. `deviation` is None where nothing was published to deviate from."""

    test: Test
    calls: int
    runs_s: tuple[float, ...]
    mean_s: float
    rows_per_hour: float
    deviation: float | None

    @property
    def known(self) -> bool:
        """Whether a figure was published."""
        return bool(self.test.published_s)

    @property
    def fits(self) -> bool:
        """Whether it is as near as asked, or inside the published range; a cell nobody knew always fits."""
        if self.test.published_rows_per_hour is None:
            return not self.known or min(self.test.published_s) <= self.mean_s <= max(self.test.published_s)
        return self.deviation is not None and abs(self.deviation) <= self.test.within


@dataclass(frozen=True, slots=True)
class Agreement:
    """EB10 once on the virtual clock, and the fastest of some runs on a real one: other work only makes it slower."""

    time_scale: float
    virtual_s: float
    real_s: float

    @property
    def deviation(self) -> float:
        """How much longer the real clock took, as a share."""
        return self.real_s / self.virtual_s - 1.0

    @property
    def fits(self) -> bool:
        """Whether both clocks tell the same."""
        return abs(self.deviation) <= AGREE


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The table, the curve it is part of, and what follows."""

    seed: int
    scenario: str
    cells: tuple[Cell, ...]
    curve: ModeCurve
    slower_beyond: bool
    agreement: Agreement | None

    @property
    def knee_fits(self) -> bool:
        """Whether the curve bends where the published one does."""
        return KNEE[0] <= self.curve.advice.knee.value <= KNEE[1]

    @property
    def misses(self) -> tuple[str, ...]:
        """What does not come out as it should, in a word each."""
        cells = [cell.test.name for cell in self.cells if not cell.fits]
        rest = {
            "the knee": self.knee_fits,
            "32 and 100": self.slower_beyond,
            "the real clock": self.agreement is None or self.agreement.fits,
        }
        return (*cells, *(name for name, fits in rest.items() if not fits))

    @property
    def fits(self) -> bool:
        """Whether all that was published comes out again."""
        return not self.misses


def load_of(test: Test, *, repeat: int, seed: int) -> Load:
    """Make one run of a test; each repeat has a seed of its own, the same in all tests."""
    return Load(
        mode=test.mode, parallel=test.parallel, companies=test.companies, rows=test.rows,
        rows_per_call=test.rows_per_call, repeat=repeat, seed=seed + repeat, profile=PROFILE,
        times=test.times, shape=test.shape,
    )  # fmt: skip


def curve_loads(*, seed: int) -> list[Load]:
    """List the runs of the curve through EB10, EB32 and EB100: the same work at other degrees of parallelism."""
    return [
        Load("batch", level, 100, 10_000, 25, repeat, seed + repeat, PROFILE)
        for level in LEVELS
        for repeat in range(REPEATS)
    ]


def reproduce(*, seed: int, workers: int, time_scale: float | None, done: Callable[[Ran], None]) -> Reproduction:
    """Run the whole table and the curve; with a `time_scale`, EB10 on a real clock too."""
    read_scenario(SCENARIO)
    wanted = [load_of(test, repeat=repeat, seed=seed) for test in TESTS for repeat in range(REPEATS)]
    # the longest first, so that no process is left with it at the end; a run that two need is made once
    loads = sorted({*wanted, *curve_loads(seed=seed)}, key=_weight)
    ran = make_runs(loads, Ground(SCENARIO, "virtual", 1.0), workers=workers, done=done)
    cells = tuple(
        _cell(test, [ran[load_of(test, repeat=repeat, seed=seed)] for repeat in range(REPEATS)]) for test in TESTS
    )
    curve = mode_curve([ran[load] for load in curve_loads(seed=seed)], rows_per_call=25, seed=seed)
    rates = {cell.test.name: cell.rows_per_hour for cell in cells}
    slower = rates["EB10"] > max(rates["EB32"], rates["EB100"])
    agreement = None if time_scale is None else agree(ran, seed=seed, time_scale=time_scale)
    return Reproduction(seed, SCENARIO, cells, curve, slower, agreement)


def count_runs(*, seed: int) -> int:
    """Count the runs of a reproduction."""
    wanted = [load_of(test, repeat=repeat, seed=seed) for test in TESTS for repeat in range(REPEATS)]
    return len({*wanted, *curve_loads(seed=seed)})


def agree(ran: dict[Load, Ran], *, seed: int, time_scale: float) -> Agreement:
    """Run EB10 against a mock in a process of its own, its time sped up, and compare."""
    load = load_of(next(test for test in TESTS if test.name == "EB10"), repeat=0, seed=seed)
    real_s = min(make_run(load, Ground(SCENARIO, "real", time_scale)).duration_s for _ in range(REPEATS))
    return Agreement(time_scale, ran[load].duration_s, real_s)


def _weight(load: Load) -> tuple[int, str, int, int, int, int]:
    calls = load.rows // load.rows_per_call * load.times
    return (-calls, load.mode, load.parallel, load.companies, load.times, load.seed)


def _cell(test: Test, runs: Sequence[Ran]) -> Cell:
    runs_s = tuple(run.duration_s for run in runs)
    mean_s = sum(runs_s) / len(runs_s)
    rows_per_hour = test.rows * 3600.0 / mean_s
    published = test.published_rows_per_hour
    deviation = None if published is None else rows_per_hour / published - 1.0
    if published is None and test.published_s:
        deviation = mean_s / (sum(test.published_s) / len(test.published_s)) - 1.0
    return Cell(test, runs[0].calls, runs_s, mean_s, rows_per_hour, deviation)
