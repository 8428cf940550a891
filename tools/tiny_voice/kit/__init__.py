"""The training of the voice in a fixed time, on a machine that has Python, numpy and torch and nothing else.

``python -m tools.tiny_voice pack`` writes these modules and all that they need into one folder. Nothing here imports
the program or coqui-tts.
"""
