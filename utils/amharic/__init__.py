"""Amharic text to what a voice model reads: normalise, split, phonemise, write in Latin letters, explain."""

from utils.amharic.explanation import explain
from utils.amharic.latin import from_latin, to_latin
from utils.amharic.normalization import normalize
from utils.amharic.phonemes import phonemize
from utils.amharic.sentences import split_sentences

__all__ = ["explain", "from_latin", "normalize", "phonemize", "split_sentences", "to_latin"]
