"""`resume`, `runs`, `report`: what ran, and going on with it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from saasload.cli import lean, options
from saasload.cli.load import number
from saasload.cli.output import emit
from saasload.errors import UsageError

Runs = Annotated[Path, typer.Option(help="The folder that run folders are in.")]
Run = Annotated[str | None, typer.Argument(help="The run's name; the latest where none is given.")]


def resume(  # noqa: PLR0913 a command has as many arguments as it has options
    run: Run = None,
    *,
    to: Annotated[str | None, typer.Option(help="Another address for the same target.")] = None,
    profile: Annotated[str | None, typer.Option(help="Another profile than the run began with.")] = None,
    mode: Annotated[str | None, typer.Option(help="Go on in another mode.")] = None,
    parallel: Annotated[str | None, typer.Option(help="Go on with another parallelism: a number, or auto.")] = None,
    per_company: Annotated[int | None, typer.Option(help="Calls on the wire at once in one company.")] = None,
    rows_per_call: Annotated[int | None, typer.Option(help="Fewer rows a call.")] = None,
    bytes_per_call: Annotated[int | None, typer.Option(help="Fewer bytes a call.")] = None,
    deadline_s: Annotated[float | None, typer.Option(help="Give a call up after so many seconds.")] = None,
    max_wait_s: Annotated[float | None, typer.Option(help="End when nothing can be sent for longer than this.")] = None,
    drain_s: Annotated[float | None, typer.Option(help="After Ctrl-C, wait so long for calls on the wire.")] = None,
    max_errors: Annotated[str | None, typer.Option(help="Stop when more than N rows, or P%, are rejected.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="A file with the token.")] = None,
    in_doubt: Annotated[
        str,
        typer.Option(help="Rows in doubt without a rule in the profile: stop, resend (not there) or skip (there)."),
    ] = "stop",
    source_changed: Annotated[
        str, typer.Option(help="refuse a source that has changed, or accept it: match rows by content.")
    ] = "refuse",
    metrics_port: options.MetricsPort = None,
    runs: Runs = options.DEFAULT_RUNS,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Go on with a run where it stopped; only what is not settled is sent.

    Example: saasload resume --parallel 4
    """
    for option, value, allowed in (
        ("--in-doubt", in_doubt, ("stop", "resend", "skip")),
        ("--source-changed", source_changed, ("refuse", "accept")),
    ):
        if value not in allowed:
            message = f"{option} {value}: use {', '.join(allowed[:-1])} or {allowed[-1]}"
            raise UsageError(message)
    wanted = parallel if parallel in {None, "auto"} else number("--parallel", str(parallel))
    changes = {
        "to": to, "profile": profile, "mode": mode, "parallel": wanted, "per_company": per_company,
        "rows_per_call": rows_per_call, "bytes_per_call": bytes_per_call, "deadline_s": deadline_s,
        "max_wait_s": max_wait_s, "drain_s": drain_s, "max_errors": max_errors, "token_file": token_file,
    }  # fmt: skip
    with lean.imports():
        import saasload.transport.over_aiohttp  # noqa: F401, PLC0415 a load takes it soon anyway
        from saasload.cli.show import Screen  # noqa: PLC0415 help must not pay for the engine's imports
        from saasload.engine import Resume, Surroundings, resume_sync  # noqa: PLC0415 the same
        from saasload.telemetry import open_telemetry  # noqa: PLC0415 the same

    given = {name: value for name, value in changes.items() if value is not None}
    how = Resume(changes=given, in_doubt=in_doubt, source_changed=source_changed)  # type: ignore[arg-type]
    screen = Screen(quiet=quiet)
    with open_telemetry(metrics_port, screen.say) as observer:
        around = Surroundings(watch=screen.watch, say=screen.say, signals=True, observer=observer)
        report = resume_sync(runs, run, how, around)
    screen.summary(report)
    if json:
        emit(report.to_json(), f"{report.folder}/report.json")
    return report.exit_code


def runs(
    *,
    runs: Runs = options.DEFAULT_RUNS,
    json: options.Json = False,
) -> int:
    """List the runs in this folder, the latest last.

    Example: saasload runs
    """
    import orjson  # noqa: PLC0415 help must not pay for it
    from rich.console import Console  # noqa: PLC0415 the same
    from rich.table import Table  # noqa: PLC0415 the same

    from saasload.run.folder import run_names  # noqa: PLC0415 the same
    from saasload.run.history import outline  # noqa: PLC0415 the same

    found = [outline(runs / name) for name in run_names(runs)]
    if json:
        emit(orjson.dumps(found, option=orjson.OPT_INDENT_2))
        return 0
    if not found:
        sys.stderr.write(f"{runs}: no runs yet\n")
        return 0
    table = Table(box=None, pad_edge=False)
    headings = ("run", "state", "source", "target", "mode", "read", "accepted", "rejected", "in doubt", "unsent")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in headings[5:] else "left")
    for facts in found:
        table.add_row(*(_cell(facts.get(heading.replace(" ", "_"))) for heading in headings))
    Console(width=None if sys.stdout.isatty() else 200).print(table)
    return 0


def report(
    run: Run = None,
    *,
    verify: Annotated[bool, typer.Option("--verify", help="Read the target back and prove what is there.")] = False,
    runs: Runs = options.DEFAULT_RUNS,
    json: options.Json = False,
) -> int:
    """Show a run's numbers again; with --verify, prove them against the target.

    Example: saasload report --verify
    """
    from saasload.cli.show import Screen  # noqa: PLC0415 help must not pay for its imports
    from saasload.run.folder import find_run  # noqa: PLC0415 the same
    from saasload.run.history import read_report  # noqa: PLC0415 the same

    folder = find_run(runs, run)
    if verify:
        from saasload.engine import verify_sync  # noqa: PLC0415 the same

        return _proof(verify_sync(runs, folder.name), json=json)
    found = read_report(folder)
    if json:
        emit(found.to_json())
    else:
        Screen(quiet=False).summary(found)
    return 0


def _proof(proof: object, *, json: bool) -> int:
    from saasload.verify import Proof  # noqa: PLC0415 help must not pay for it

    assert isinstance(proof, Proof)  # noqa: S101 for the type checker: engine's verify makes nothing else
    if json:
        emit(proof.to_json())
    else:
        sys.stderr.write("\n".join(proof.lines()) + "\n")
    return proof.exit_code


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value or "")
