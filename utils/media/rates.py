"""The sample rates of XTTS, and the lengths of its mel frames and audio codes."""

RATE = 22_050  # samples a second of the sound that it hears and learns from
OUTPUT_RATE = 24_000  # of the sound that its vocoder writes
FRAME_SAMPLES = 256  # from one mel frame to the next
CODE_SAMPLES = 1024  # that one code stands for
CODE_SECONDS = CODE_SAMPLES / RATE
