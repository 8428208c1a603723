"""Load rows into partitioned SaaS platforms, with a known outcome for every row."""
