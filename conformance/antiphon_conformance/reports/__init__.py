"""What a run of the suite gave, written down: each format is a module of its own, made from one `SuiteReport`."""
