"""The chosen take as the page shows it: its sound, its facts, its sentences and its files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError, ConfigError
from utils.core.paths import Project
from utils.core.storage import write_atomically
from utils.media.encoding import AUDIO_FORMATS, Tags, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.speech.captions import cues_of, srt, vtt
from utils.ui.i18n import t
from utils.ui.tabs.inference import render
from utils.ui.tabs.inference.context import Room, fault
from utils.ui.tabs.inference.speak import sound_of
from utils.ui.views import note
from utils.workspace import takes
from utils.workspace.takes import Take

ENDINGS = [".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a"]
FILES = {".srt": srt, ".vtt": vtt}


@dataclass(frozen=True)
class TakeView:
    """The widgets that show the chosen take."""

    room: Room
    chosen: gr.Radio
    sound: gr.Audio
    facts: gr.HTML
    sentences: gr.Radio
    files: gr.HTML
    redone: gr.State

    @property
    def outputs(self) -> list[Any]:
        """Return what ``show`` fills, in its order."""
        return [self.sound, self.facts, self.sentences, self.files]

    @property
    def given(self) -> list[Any]:
        """Return what every handler reads: project, take, language."""
        return [self.room.page.project, self.chosen, self.room.page.language]

    def show(self, project: str, name: str | None, language: str) -> tuple[Any, ...]:
        """Show a take; an error stays in its place."""
        try:
            place = self.room.open(project)
            if not name:
                return None, note(t("inference.no_takes", language)), gr.update(choices=[], value=None), ""
            take = takes.find(place, name)
            return (
                str(sound_of(place, take)),
                render.take_facts(take, language),
                gr.update(choices=sentence_choices(take, language), value=None),
                render.downloads(links(place, take)),
            )
        except AmharicTtsError as error:
            return None, fault(error, language), gr.update(choices=[], value=None), ""


def format_picker(value: str, name: str) -> gr.Dropdown:
    """Make the choice of a kind of sound file."""
    return gr.Dropdown(
        ENDINGS,
        value=value,
        label=t("inference.file_format"),
        info=t("inference.file_format_hint"),
        interactive=True,
        elem_id=name,
        min_width=160,
    )


def sentence_choices(take: Take, language: str) -> list[tuple[str, int]]:
    """List the sentences of a take as (what a person sees, number)."""
    return [(render.sentence_title(number + 1, one, language), number) for number, one in enumerate(take.pieces)]


def write_file(place: Project, take: Take, ending: str) -> Path:
    """Write a take as a file of another kind beside it."""
    if ending not in AUDIO_FORMATS:
        raise ConfigError(f"Sound is not written as {ending}.", hint=f"Choose {', '.join(ENDINGS)}.")
    path = sound_of(place, take).with_suffix(ending)
    if ending != ".wav":
        write_audio(path, takes.sound(place, take), OUTPUT_RATE, tags=Tags(take.text[:80], take.model, take.voice))
    return path


def forget_files(place: Project, take: Take) -> None:
    """Remove what was written of a take before it was changed."""
    for path in takes.folder_of(place, take.name).iterdir():
        if path.name not in (takes.SOUND, takes.ABOUT):
            path.unlink(missing_ok=True)


def links(place: Project, take: Take) -> list[str]:
    """Offer the sound of a take, its subtitles, and what else was written of it."""
    folder = takes.folder_of(place, take.name)
    cues = [cue for one in take.pieces for cue in cues_of(one.reading.written, one.start, one.start + one.seconds)]
    for ending, form in FILES.items():
        path = folder / f"take{ending}"
        if not path.exists() and any(one.reading.written for one in take.pieces):
            write_atomically(path, form(cues))
    found = sorted(path for path in folder.iterdir() if path.stem == "take" and path.suffix in {*AUDIO_FORMATS, *FILES})
    return [render.link(path, path.suffix.removeprefix(".").upper()) for path in found]
