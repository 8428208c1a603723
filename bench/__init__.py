"""Measurements of saasload: `python -m bench` from the root of the repository, see docs/performance.md."""
