"""The base models that come with the program, beside the published versions of XTTS v2."""

TINY = "tiny"  # the embedded voice
TINY_RANDOM = "tiny-random"  # the same classes with random weights, made in a second
BUILT_IN = (TINY, TINY_RANDOM)  # they need neither a download nor somebody's licence
