"""Check that texts match their sound: a small phone recogniser, forced alignment, and the clips that follow from it."""
