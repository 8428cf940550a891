"""Evaluation of models: error rates, voice similarity, duration, mel-cepstral distance, warnings and speed.

``evaluate`` measures, ``report`` saves and prints, ``metrics`` tells differences from chance, and ``blind_test``
lets people compare models without knowing which is which.
"""
