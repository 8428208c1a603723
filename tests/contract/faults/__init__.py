"""Faults of a connection, on real sockets."""
