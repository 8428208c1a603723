"""The command line: `python -m mock_server`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mock_server.scenario import ScenarioError, load_scenario, scenario_names
from mock_server.serve import Options, ServeError, serve

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mock server; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        scenario = load_scenario(options.scenario)
        if options.seed is not None:
            scenario = scenario.model_copy(update={"seed": options.seed})
        how = Options(
            host=options.host, port=options.port, time_scale=options.time_scale, allow_remote=options.allow_remote,
            announce=options.announce, die_with_stdin=options.die_with_stdin, db=options.db,
        )  # fmt: skip
        serve(scenario, how)
    except (ScenarioError, ServeError) as error:
        sys.stderr.write(f"mock_server: {error}\n")
        return USAGE_ERROR
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mock_server", description="A practice accounting cloud.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=_port, default=8000, help="port, 0 = a free one (default: %(default)s)")
    names = ", ".join(scenario_names())
    parser.add_argument("--scenario", default="default", metavar="NAME|FILE", help=f"what to play: {names}, or a file")
    parser.add_argument("--time-scale", type=_scale, default=1.0, metavar="X", help="mock seconds in a real one")
    parser.add_argument("--seed", type=int, help="another seed than the scenario's")
    parser.add_argument("--db", type=Path, metavar="FILE", help="keep what is booked in this file over restarts")
    parser.add_argument("--allow-remote", action="store_true", help="allow an address other machines can reach")
    parser.add_argument("--announce", action="store_true", help="print one JSON line on stdout when it listens")
    parser.add_argument("--die-with-stdin", action="store_true", help="stop when standard input ends")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        message = f"{text!r} is no port (0 to 65535)"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0.001 <= scale <= 1e6:
        message = f"{text!r} is no time scale (from 0.001 to 1000000)"
        raise argparse.ArgumentTypeError(message)
    return scale


if __name__ == "__main__":
    sys.exit(main())
