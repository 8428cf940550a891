"""Evaluation of models: error rates, voice similarity, duration, mel-cepstral distance, warnings and speed.

``evaluate`` measures, ``report`` saves and prints, and ``metrics`` tells differences from chance.
"""
