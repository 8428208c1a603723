"""The command line: arguments in, words out."""

from saasload.cli.app import main

__all__ = ["main"]
