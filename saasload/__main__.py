"""Run saasload as `python -m saasload`."""

import sys

from saasload.cli import main

if __name__ == "__main__":
    sys.exit(main())
