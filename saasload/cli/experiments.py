"""`curve`, `reproduce` and `calibrate`: how parallel, the published figures again, and a scenario from a run."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from saasload.errors import UsageError

INTERRUPTED = 130

SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, help="Virtual runs made at once. Without it: one a core. Figures do not depend on it."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no tables; errors only.")]


def curve(  # noqa: PLR0913 a command has as many arguments as it has options
    *,
    parallel: Annotated[str, typer.Option(help="Levels to try, by commas.")] = "1,2,4,6,8,10,12,16,32,64,100",
    mode: Annotated[str, typer.Option(help="insert, batch, xml, by commas.")] = "insert,batch,xml",
    companies: Annotated[int, typer.Option(help="Companies that get rows.")] = 100,
    rows: Annotated[int, typer.Option(help="Rows a company, the same at every level.")] = 100,
    repeats: Annotated[int, typer.Option(help="Runs a level, each with a seed of its own.")] = 5,
    rows_per_call: Annotated[
        int | None, typer.Option(help="Rows a call in batch and xml. Without it: a quarter of a company's rows.")
    ] = None,
    scenario: Annotated[str, typer.Option(help="What the mock plays: a name or a .toml file.")] = "seeds",
    clock: Annotated[str, typer.Option(help="virtual (in this process, no waiting) or real.")] = "virtual",
    time_scale: Annotated[float, typer.Option(help="How much faster time runs at the mock on a real clock.")] = 50.0,
    to: Annotated[
        str | None, typer.Option(help="Another target than the bundled mock, by address or name; needs --clock real.")
    ] = None,
    profile: Annotated[str | None, typer.Option(help="The platform's profile: a name or a .toml file.")] = None,
    yes_load_a_real_target: Annotated[
        bool, typer.Option("--yes-load-a-real-target", help="Agree that --to is really written to.")
    ] = False,
    row_budget: Annotated[int | None, typer.Option(help="Write at most so many rows to --to.")] = None,
    seed: SeedOption = 1,
    workers: WorkersOption = None,
    out: Annotated[Path, typer.Option(help="The folder for curve.html, .json, .csv and .png.")] = Path(
        ".saasload/curve"
    ),
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Measure throughput at several degrees of parallelism and say which to use.

    Example: saasload curve --mode batch --parallel 1,2,4,6,8,10,12,16,32 --scenario seeds
    """
    from saasload.experiments.extras import need_extras  # noqa: PLC0415 help must not pay for the imports of all this

    need_extras()
    from saasload.experiments.plan import check_real_target, make_plan, parse_levels, parse_modes  # noqa: PLC0415
    from saasload.experiments.runs import spare_cores  # noqa: PLC0415

    url, profile, token = _target(to, profile)
    plan = make_plan(
        parallel=parse_levels(parallel), modes=parse_modes(mode), companies=companies, rows=rows, repeats=repeats,
        rows_per_call=rows_per_call, scenario=scenario, clock=clock, to=url, profile=profile, time_scale=time_scale,
        seed=seed, workers=workers or spare_cores(), token=token,
    )  # fmt: skip
    check_real_target(plan, agreed="agreed" if yes_load_a_real_target else "not agreed", row_budget=row_budget)
    from saasload.experiments import curve as experiment  # noqa: PLC0415
    from saasload.experiments import document, files, terminal  # noqa: PLC0415

    files.make_out(out)
    total = len(plan.parallel) * len(plan.modes) * plan.repeats
    progress = terminal.Progressing(total, quiet=quiet)
    try:
        with progress:
            result = experiment.run_curve(plan, done=progress.done, keep=out / "runs")
    except KeyboardInterrupt:
        return _interrupted(progress.interrupted())
    paths = files.write_curve(out, result)
    terminal.finish(lambda console: terminal.show_curve(console, result), paths, quiet=quiet)
    if json:
        _print(document.to_json(document.curve_document(result)))
    return 0


def reproduce(  # noqa: PLR0913 a command has as many arguments as it has options
    *,
    seed: SeedOption = 1,
    real_clock: Annotated[
        bool, typer.Option("--real-clock", help="Run EB10 on a real clock as well, and compare.")
    ] = False,
    time_scale: Annotated[float, typer.Option(help="How much faster time runs there.")] = 50.0,
    workers: WorkersOption = None,
    out: Annotated[Path, typer.Option(help="The folder for reproduce.html, .json, .csv and .png.")] = Path(
        ".saasload/reproduce"
    ),
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> int:
    """Run the published load tests again on a virtual clock, beside the published figures.

    Exit code 1 says that some figure is further off than it should be.

    Example: saasload reproduce --real-clock
    """
    from saasload.experiments.extras import need_extras  # noqa: PLC0415 help must not pay for the imports of all this

    need_extras()
    from saasload.experiments import document, files, terminal  # noqa: PLC0415
    from saasload.experiments import reproduce as experiment  # noqa: PLC0415
    from saasload.experiments.runs import spare_cores  # noqa: PLC0415

    if not 0.0 < time_scale <= 1000.0:
        raise UsageError(f"--time-scale {time_scale:g}: must be above 0 and at most 1,000")
    files.make_out(out)
    progress = terminal.Progressing(experiment.count_runs(seed=seed), quiet=quiet)
    scale = time_scale if real_clock else None
    try:
        with progress:
            result = experiment.reproduce(
                seed=seed, workers=workers or spare_cores(), time_scale=scale, done=progress.done
            )
    except KeyboardInterrupt:
        return _interrupted(progress.interrupted())
    paths = files.write_reproduction(out, result)
    terminal.finish(lambda console: terminal.show_reproduction(console, result), paths, quiet=quiet)
    if json:
        _print(document.to_json(document.reproduction_document(result)))
    return 0 if result.fits else 1


def calibrate(
    run: Annotated[list[str], typer.Argument(help="Finished runs of one target: names or folders.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The scenario file to write.")] = Path("scenario.toml"),
    runs: Annotated[Path, typer.Option(help="The folder that run folders are in.")] = Path(".saasload/runs"),
    quiet: QuietOption = False,
) -> int:
    """Fit a scenario to finished runs, so that the mock plays like their target.

    Then: saasload curve --scenario mine.toml

    Example: saasload calibrate 20260105-120000-ab12 -o mine.toml
    """
    from saasload.experiments.extras import need_extras  # noqa: PLC0415 help must not pay for the imports of all this

    need_extras(("numpy", "scipy"))
    from saasload.experiments import calibrate as experiment  # noqa: PLC0415

    found = experiment.calibrate([experiment.find_run(runs, name) for name in run], out)
    if not quiet:
        sys.stderr.write("\n".join(experiment.lines(found)) + "\n")
    return 0


def _target(to: str | None, profile: str | None) -> tuple[str | None, str | None, str | None]:
    """Find a target's address, profile and token; by name in `saasload.toml`."""
    if to is None:
        return None, profile, None
    import os  # noqa: PLC0415

    from saasload.settings import find_target, load_settings  # noqa: PLC0415 help must not pay for it

    target = find_target(load_settings(Path.cwd()), to)
    if target is None:
        return to, profile, None
    token = os.environ.get(target.token_env) if target.token_env else None
    if target.token_env and not token:
        message = f"target {to}: no token in the environment variable {target.token_env}"
        raise UsageError(message)
    return target.url, profile or target.profile, token


def _interrupted(words: str) -> int:
    sys.stderr.write(f"saasload: {words}\n")
    return INTERRUPTED


def _print(document: bytes) -> None:
    sys.stdout.buffer.write(document)
    sys.stdout.flush()
