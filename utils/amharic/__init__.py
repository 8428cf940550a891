"""Amharic text to what a voice model reads: normalize, split, phonemize, write in Latin letters, explain."""

from utils.amharic.alphabet import from_latin, to_latin
from utils.amharic.explanation import explain
from utils.amharic.normalization import normalize, split_sentences
from utils.amharic.phonemes import phonemize

__all__ = ["explain", "from_latin", "normalize", "phonemize", "split_sentences", "to_latin"]
