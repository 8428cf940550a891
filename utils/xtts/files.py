"""The names of the files of a model folder: those of the hub, and what this project lays beside them."""

MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE = "model.pth", "config.json", "vocab.json"
DVAE_FILE, MEL_FILE, SPEAKERS_FILE = "dvae.pth", "mel_stats.pth", "speakers_xtts.pth"
SETTINGS_FILE = "text.json"  # how the added language is read
REFERENCE_FILE = "reference.wav"  # the voice that it speaks with unless told otherwise
ABOUT_FILE = "about.json"  # what a finished model says of itself

BELONGING = (CONFIG_FILE, VOCABULARY_FILE)  # what weights cannot speak without
HUB_FILES = (MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE, DVAE_FILE, MEL_FILE, SPEAKERS_FILE)  # what the hub has
