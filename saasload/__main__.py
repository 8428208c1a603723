"""Run saasload as `python -m saasload`."""

import sys

from saasload.cli import program

if __name__ == "__main__":
    sys.exit(program())
