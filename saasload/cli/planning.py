"""`plan`: what a load will take, before anything is sent."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from saasload.cli import lean, options
from saasload.cli.load import job_of, number, pairs
from saasload.cli.output import emit

if TYPE_CHECKING:
    from saasload.job import Job


def plan(  # noqa: PLR0913 a command has as many arguments as it has options
    source: options.Source,
    *,
    to: options.To = None,
    profile: options.Profile = None,
    entity: options.Entity = "Account",
    mode: Annotated[str | None, typer.Option(help="Only this mode; without it, all that the profile lists.")] = None,
    companies: options.Companies = "all",
    partitions: options.Partitions = None,
    partition_by: options.PartitionBy = None,
    parallel: Annotated[str, typer.Option(help="Forecast this many calls at once; auto finds the best.")] = "auto",
    per_company: options.PerCompany = 1,
    rows_per_call: options.RowsPerCall = None,
    field: options.Field = None,
    source_format: options.SourceFormat = None,
    deadline: Annotated[str | None, typer.Option(help="HH:MM; say whether the load is done by then.")] = None,
    runs: Annotated[Path, typer.Option(help="The folder with earlier runs, for their pace.")] = options.DEFAULT_RUNS,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON on stdout.")] = False,
) -> int:
    """Read a file and forecast its load by each mode; nothing is sent.

    Example: saasload plan customers.parquet --deadline 18:00
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
        rows_per_call=rows_per_call,
        fields=pairs(field or []),
        format=source_format,
        runs=runs,
    )
    return show_plan(job, deadline, json=json)


def show_plan(job: "Job", deadline: str | None, *, json: bool) -> int:
    """Make a job's plan and show it; 0 whatever it says."""
    with lean.imports():
        import saasload.transport.over_aiohttp  # noqa: F401, PLC0415 asking for the companies takes it soon anyway
        from saasload.cli.show import Screen, plan_lines  # noqa: PLC0415 help must not pay for the engine's imports
        from saasload.engine import Surroundings, plan_sync  # noqa: PLC0415 the same

    screen = Screen(quiet=False)
    found = plan_sync(job, Surroundings(say=screen.say), deadline)
    if json:
        emit(found.to_json())
    else:
        for line in plan_lines(found):
            screen.say(line)
    return 0
