"""What the documents claim, checked."""
