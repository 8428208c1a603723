"""Topics: what travels as XML, many records in one document."""
