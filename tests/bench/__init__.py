"""The performance table: our conversion beside its peers and beside the least it could cost. `python -m tests.bench`."""
