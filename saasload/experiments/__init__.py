"""Parallelism curves, the published table again, and scenarios fitted to finished runs."""
