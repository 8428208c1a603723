"""Runs that are killed and go on."""
