"""A year of runs: series of one kernel's times, the steps in them, and what each step was."""
