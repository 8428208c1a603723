"""Metrics and spans, without a load."""
