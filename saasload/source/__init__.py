"""Where rows come from, and which company each belongs to."""
