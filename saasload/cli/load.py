"""`push`: load a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saasload.cli import lean, options
from saasload.cli.output import emit
from saasload.errors import UsageError

if TYPE_CHECKING:
    from saasload.job import Job


def push(  # noqa: PLR0913 a command has as many arguments as it has options
    source: options.Source,
    *,
    to: options.To = None,
    profile: options.Profile = None,
    entity: options.Entity = "Account",
    mode: Annotated[
        str | None, typer.Option(help="insert (one POST a row), batch or xml. Without it: the profile's first.")
    ] = None,
    companies: options.Companies = "all",
    partitions: options.Partitions = None,
    partition_by: options.PartitionBy = None,
    parallel: Annotated[
        str, typer.Option(help="Calls on the wire at once, over all companies: a number, or auto to find the best.")
    ] = "auto",
    per_company: options.PerCompany = 1,
    order: Annotated[
        str, typer.Option(help="Which company goes next: longest (most work left), fair (in turn) or fifo.")
    ] = "longest",
    rows_per_call: options.RowsPerCall = None,
    bytes_per_call: Annotated[int | None, typer.Option(help="Fewer bytes a call than the profile allows.")] = None,
    field: options.Field = None,
    source_format: options.SourceFormat = None,
    deadline_s: Annotated[float | None, typer.Option(help="Give a call up after so many seconds.")] = None,
    wait_for_day: Annotated[
        str, typer.Option(help="yes: wait for a day limit to be over; no: end the run, to be resumed.")
    ] = "yes",
    max_wait_s: Annotated[
        float | None, typer.Option(help="End the run when nothing can be sent for longer than this.")
    ] = None,
    drain_s: Annotated[float, typer.Option(help="After Ctrl-C, wait so long for calls on the wire.")] = 30.0,
    max_errors: Annotated[
        str | None, typer.Option(help="Stop when more than N rows, or P% of them, are rejected.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token; read again when it is renewed.")
    ] = None,
    budget_dir: Annotated[
        str | None,
        typer.Option(help='Where loads share one budget of limits: a folder, or redis://…; "" for this load alone.'),
    ] = None,
    time_scale: Annotated[float | None, typer.Option(help="How much faster time runs at a mock server.")] = None,
    runs: Annotated[Path, typer.Option(help="The folder that run folders are made in.")] = options.DEFAULT_RUNS,
    run: Annotated[
        str | None, typer.Option(help="A name for the run. Without it: date, time and four letters.")
    ] = None,
    metrics_port: options.MetricsPort = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what the load will take, and send nothing.")] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Load a file of rows into the companies of a target.

    Example: saasload push customers.parquet --partitions 100 --parallel 10
    """
    job = job_of(
        to,
        profile,
        source=source,
        entity=entity,
        mode=mode,
        companies=companies,
        partitions=partitions,
        partition_by=partition_by,
        parallel=parallel if parallel == "auto" else number("--parallel", parallel),
        per_company=per_company,
        order=order,
        rows_per_call=rows_per_call,
        bytes_per_call=bytes_per_call,
        fields=pairs(field or []),
        format=source_format,
        deadline_s=deadline_s,
        wait_for_day=wait_for_day,
        max_wait_s=max_wait_s,
        drain_s=drain_s,
        max_errors=max_errors,
        token_file=token_file,
        budget_dir=budget_dir,
        time_scale=time_scale,
        runs=runs,
        run=run,
    )
    if plan:
        from saasload.cli.planning import show_plan  # noqa: PLC0415 only when asked

        return show_plan(job, None, json=json)
    with lean.imports():
        import saasload.transport.over_aiohttp  # noqa: F401, PLC0415 a load into a server takes it soon anyway
        from saasload.cli.show import Screen  # noqa: PLC0415 help must not pay for the engine's imports
        from saasload.engine import Surroundings, push_sync  # noqa: PLC0415 the same
        from saasload.telemetry import open_telemetry  # noqa: PLC0415 the same

    screen = Screen(quiet=quiet)
    with open_telemetry(metrics_port, screen.say) as observer:
        around = Surroundings(watch=screen.watch, say=screen.say, signals=True, observer=observer)
        report = push_sync(job, around)
    screen.summary(report)
    if json:
        emit(report.to_json(), f"{report.folder}/report.json")
    return report.exit_code


def job_of(to: str | None, profile: str | None, **arguments: object) -> "Job":
    """Complete the arguments from `saasload.toml` and check them."""
    from pydantic import SecretStr  # noqa: PLC0415 help must not pay for it

    from saasload.job import EMBEDDED, make_job  # noqa: PLC0415 the same
    from saasload.settings import find_target, load_settings  # noqa: PLC0415 the same

    settings = load_settings(Path.cwd())
    name = to or settings.default_target
    if name is None or name == EMBEDDED:
        return make_job(to=EMBEDDED, profile=profile, **arguments)
    target = find_target(settings, name)
    if target is None:
        return make_job(to=name, profile=profile, **arguments)
    token = None
    if target.token_env is not None:
        import os  # noqa: PLC0415

        found = os.environ.get(target.token_env)
        if not found:
            message = f"target {name}: no token in the environment variable {target.token_env}"
            raise UsageError(message)
        token = SecretStr(found)
    return make_job(to=target.url, profile=profile or target.profile, token=token, **arguments)


def number(option: str, text: str) -> int:
    """Read an option that is a number or a word that was dealt with before; UsageError for anything else."""
    try:
        return int(text)
    except ValueError as error:
        message = f"{option} {text}: must be a number, or auto"
        raise UsageError(message) from error


def pairs(given: list[str]) -> dict[str, str]:
    """Read FIELD=COLUMN options; UsageError for one that is not."""
    found = {}
    for pair in given:
        name, equals, column = pair.partition("=")
        if not (name and equals and column):
            message = f"--field {pair}: write it as FIELD=COLUMN"
            raise UsageError(message)
        found[name] = column
    return found
