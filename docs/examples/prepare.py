"""Cut a recording with subtitles into clips with text, in any folder: utils.dataset alone, no project."""

from pathlib import Path

import utils
from utils.config import DatasetConfig
from utils.dataset.prepare import prepare
from utils.dataset.sources import find_recordings

talk = Path(utils.__file__).parent / "studio" / "data" / "sample.ogg"  # or a file or folder of your own
found = find_recordings([talk], language="am")
settings = DatasetConfig(segmenter="energy", check_texts=False)
dataset = prepare(found.recordings, Path("dataset"), settings, report=print, problems=found.problems)
for clip in dataset.kept[:5]:
    print(f"{clip.span.start:6.2f}-{clip.span.end:6.2f} s  {clip.audio}  {clip.text}")
