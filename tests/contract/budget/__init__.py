"""Budgets that processes share."""
