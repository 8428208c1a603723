"""One execution: its folder, its outcomes, its report."""
