"""Arithmetic that is told the time and never waits."""
