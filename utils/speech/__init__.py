"""From a text to its sound: decoding, voices, streaming, long texts, and honesty about what went wrong."""
