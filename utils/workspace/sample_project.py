"""A small project to try everything with: three minutes spoken by espeak-ng, and what they say.

The recording was made by the stage "sample" of ``tools.tiny_voice build``, in a voice that the small model never heard.
"""

from pathlib import Path

from utils.core.paths import OUTPUT, Project, project
from utils.core.storage import atomic_writer, make_folder, read_text

NAME = "sample"
SOUND, SUBTITLES = "sample.ogg", "sample.am.srt"
MADE = Path(__file__).parent / "data"
RECORDINGS = Path("recordings", "uploads")  # below the dataset folder, where uploads lie


def create(output: Path = OUTPUT, name: str = NAME) -> Project:
    """Make the project, or complete the one that is there; return it."""
    place = project(name, output)
    folder = place.dataset / RECORDINGS
    make_folder(folder)
    for file in (SOUND, SUBTITLES):
        if not (folder / file).is_file():
            with atomic_writer(folder / file) as copied:
                copied.write((MADE / file).read_bytes())
    return place


def sentences() -> list[str]:
    """Return what is said in the recording."""
    return [block.split("\n", 2)[2].strip() for block in read_text(MADE / SUBTITLES).split("\n\n")]
