"""The commands together, and the one place where errors become a line and an exit code."""

import os
import sys
from collections.abc import Sequence

import click
import typer

from saasload.cli import load, practice
from saasload.errors import SaasloadError

USAGE = 2
STOPPED_EARLY = 3
INTERRUPTED = 130

app = typer.Typer(
    name="saasload",
    help="Load rows into the companies of a multi-tenant cloud, within its limits, with a known outcome for every row.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
app.command()(load.push)
app.command()(practice.sample)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(practice.mock)


@app.callback(invoke_without_command=True)
def _common(*, version: bool = typer.Option(default=False, help="Print the version and leave.")) -> None:
    if version:
        from importlib.metadata import version as installed  # noqa: PLC0415 only when asked

        typer.echo(f"saasload {installed('saasload')}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. Every error is one line on stderr."""
    try:
        result = typer.main.get_command(app).main(arguments, prog_name="saasload", standalone_mode=False)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.exceptions.Abort:
        return _said("interrupted before anything was sent", INTERRUPTED)
    except click.ClickException as error:
        return _said(error.format_message().replace("\n", " ").rstrip("."), USAGE, hint=True)
    except KeyboardInterrupt:
        return _said("interrupted before anything was sent", INTERRUPTED)
    except SaasloadError as error:
        return _said(str(error), USAGE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STOPPED_EARLY
    return result if isinstance(result, int) else 0


def _said(line: str, code: int, *, hint: bool = False) -> int:
    more = " (see --help)" if hint else ""
    sys.stderr.write(f"saasload: {line}{more}\n")
    return code
