"""The sample project: three minutes of speech by espeak-ng with subtitles.

The recording was made by ``tools.tiny_voice.sample``, with a speaker that the embedded voice was
not trained on.
"""

from pathlib import Path

from utils.core.storage import atomic_writer, make_folder
from utils.studio.paths import OUTPUT, RECORDINGS, Project, project

NAME = "sample"
AUDIO_FILE = "sample.ogg"
SUBTITLE_FILE = "sample.am.srt"
DATA = Path(__file__).parent / "data"
UPLOADS = Path(RECORDINGS, "uploads")  # in the dataset folder


def create(output: Path = OUTPUT, name: str = NAME) -> Project:
    """Create the project, or complete an existing one."""
    created = project(name, output)
    folder = created.dataset / UPLOADS
    make_folder(folder)
    for file in (AUDIO_FILE, SUBTITLE_FILE):
        if not (folder / file).is_file():
            with atomic_writer(folder / file) as copy:
                copy.write((DATA / file).read_bytes())
    return created
