"""`sample` and `mock`: something to load, and somewhere to load it."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from saasload.cli.words import counted


def sample(
    out: Annotated[Path, typer.Argument(help="The file to write; .parquet or .csv.")],
    *,
    rows: Annotated[int, typer.Option(min=0, help="How many customers.")] = 10_000,
    companies: Annotated[int, typer.Option(min=1, help="Over how many companies, numbered from 1001.")] = 100,
    seed: Annotated[int, typer.Option(help="The same seed makes the same file.")] = 1,
    skew: Annotated[
        float, typer.Option(min=0.0, help="Zipf exponent of the companies' sizes; 0 makes them equal.")
    ] = 0.0,
    order: Annotated[str, typer.Option(help="shuffled, sorted (by company) or dealt.")] = "shuffled",
) -> int:
    """Write a realistic file of customers to try with.

    Example: saasload sample customers.parquet --rows 10000 --companies 100
    """
    from saasload.sample import write_sample  # noqa: PLC0415 help must not pay for its imports

    write_sample(out, rows=rows, companies=companies, seed=seed, skew=skew, order=order)
    sys.stderr.write(f"{out}: {counted(rows, 'customer')} over {counted(companies, 'company')}\n")
    return 0


ALL_ARGUMENTS = {"help_option_names": [], "allow_extra_args": True, "ignore_unknown_options": True}
"""The mock server reads its own arguments, --help among them."""


def mock(context: typer.Context) -> int:
    """Run the mock accounting cloud by itself, until Ctrl-C; its own options are in saasload mock --help.

    Example: saasload mock --port 8000 --time-scale 20
    """
    # Another program, not a part of this one: it takes this process over, signals and exit code included.
    os.execv(sys.executable, [sys.executable, "-m", "mock_server", *context.args])  # noqa: S606 our own interpreter


def chaos(
    *,
    rounds: Annotated[int, typer.Option(min=1, help="How many loads to kill and resume.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The first round's seed; the next rounds count on from it.")] = 1,
    rows: Annotated[int, typer.Option(min=1, help="Rows a round.")] = 1000,
    companies: Annotated[int, typer.Option(min=1, help="Companies a round.")] = 20,
    mode: Annotated[str, typer.Option(help="insert, batch, xml, or all in turn.")] = "all",
) -> int:
    """Test this installation: loads are killed at random, resumed until done, and audited against the mock's ledger.

    Example: saasload chaos --rounds 5 --seed 1
    """
    from saasload.chaos import Plan, Round  # noqa: PLC0415 help must not pay for its imports
    from saasload.chaos import chaos as play  # noqa: PLC0415 the same
    from saasload.errors import UsageError  # noqa: PLC0415 the same

    if mode not in {"all", "insert", "batch", "xml"}:
        message = f"--mode {mode}: use insert, batch, xml or all"
        raise UsageError(message)

    def say(played: Round) -> None:
        sys.stderr.write(played.line() + "\n")

    plan = Plan(rounds, seed, rows, companies, None if mode == "all" else mode)  # type: ignore[arg-type]
    played = play(plan, say)
    good = sum(one.good for one in played)
    kills = sum(one.kills for one in played)
    rows_played = counted(sum(one.rows for one in played), "row")
    sys.stderr.write(f"{good} of {counted(len(played), 'round')} good, {counted(kills, 'kill')}, {rows_played}\n")
    return int(good < len(played))
