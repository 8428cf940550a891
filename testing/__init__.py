"""What tests, tools and benchmarks share: random and untrained models, and faults to plant."""
