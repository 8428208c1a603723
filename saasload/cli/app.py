"""The commands together, and the one place where errors become a line and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from saasload.cli import experiments, history, load, planning, practice
from saasload.errors import NoRoomError, SaasloadError

# typer brings its own copy of click since 0.20, so click's classes are taken from where typer has them.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

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
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command()(load.push)
app.command()(planning.plan)
app.command()(history.resume)
app.command()(history.runs)
app.command()(history.report)
app.command()(practice.sample)
app.command()(practice.chaos)
app.command()(experiments.curve)
app.command()(experiments.reproduce)
app.command()(experiments.calibrate)
app.command(context_settings={"help_option_names": [], "allow_extra_args": True, "ignore_unknown_options": True})(
    practice.mock
)


@app.callback(invoke_without_command=True)
def _common(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False
) -> None:
    if version:
        from importlib.metadata import version as installed  # noqa: PLC0415 only when asked

        typer.echo(f"saasload {installed('saasload')}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. Every error is one line on stderr."""
    try:
        result = typer.main.get_command(app).main(arguments, prog_name="saasload", standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code
    except _UsageError as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return _said("interrupted before anything was sent", INTERRUPTED)
    except SaasloadError as error:
        return _said(str(error), STOPPED_EARLY if isinstance(error, NoRoomError) else USAGE)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STOPPED_EARLY
    return result if isinstance(result, int) else 0


def _usage(error: Exception) -> int:
    """Say what is wrong with the arguments; a bare `saasload` is answered with the help it asks for."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        sys.stderr.write(context.get_help() + "\n")
        return USAGE
    words = getattr(error, "format_message", error.__str__)()
    name = context.command_path if context is not None else "saasload"
    return _said(" ".join(str(words).split()).rstrip(".") + f"; see {name} --help", USAGE)


def _said(line: str, code: int) -> int:
    sys.stderr.write(f"saasload: {line}\n")
    return code
