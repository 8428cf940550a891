"""What is heard in a recording: voice activity, levels, phones, aligned words, and speech recognisers."""
