"""The fault matrix in virtual time."""
