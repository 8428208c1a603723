"""What the transport says of each failure, against what a server really saw."""
