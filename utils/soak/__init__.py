"""The campaign against ourselves: damaged files for every reader, and faults for every run, each counted."""
