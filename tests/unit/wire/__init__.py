"""Bytes out of rows, and outcomes out of bytes."""
