"""Speak a text with a model in any folder: utils.speech alone, no project."""

from pathlib import Path

from utils.config import SpeechConfig
from utils.core.facts import Stop
from utils.core.paths import TINY_MODEL
from utils.speech.synthesizer import open_voice, speak

voice = open_voice(TINY_MODEL, device="cpu")  # or the folder of a model of your own
settings = SpeechConfig(seed=7, speed=1.1)
speech = speak(voice, "ሰላም ለዓለም። ዛሬ 3 ሰዓት ላይ እንገናኝ!", settings, report=print, should_stop=lambda: Stop.NO)
speech.save(Path("hello.wav"))
print(f"{speech.seconds:.1f} s in the voice {speech.voice}; {len(speech.flags)} warnings")
