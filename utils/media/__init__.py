"""Read, write, resample and stretch audio."""
