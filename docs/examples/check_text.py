"""Find where the words of a text are spoken, and tell a wrong text from the right one: utils.recognition alone."""

from pathlib import Path

import utils
from utils.media import audio
from utils.recognition.aligner import align, emit
from utils.recognition.phone_recogniser import EMBEDDED, RATE, load_recogniser
from utils.recognition.units import units_of

talk = Path(utils.__file__).parent / "studio" / "data" / "sample.ogg"  # or a recording of your own
amharic = units_of("am")
sound = emit(load_recogniser(EMBEDDED, amharic), audio.load(talk, RATE, 3.4, 6.0))
for text in ("ዛሬ ማታ እንግዶች ይመጣሉ እንዴ?", "ቡና በጠዋት መጠጣት ደስ ይላል።"):
    aligned = align(sound, amharic.words(text))
    if aligned:
        words = ", ".join(f"{word.text} {word.span.start:.2f} s" for word in aligned.words)
        print(f"{aligned.score:.2f} per phone: {words}")  # 0 is best
