"""Commands as users run them, and runs that are killed and go on."""
