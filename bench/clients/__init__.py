"""Other ways to send the same rows, each a program of its own that prints its figures as one JSON line."""
