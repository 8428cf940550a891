"""The stages of the embedded voice, from sentences to a folder that speaks and the figures about it."""

from typing import Any

from utils.storage import make_folder
from utils.voice import (
    assembling,
    codes,
    corpus,
    ears,
    lessons,
    measuring,
    prompts,
    recording,
    sample_recording,
    sounding,
    speakers,
)
from utils.voice.stages import Stage, Workshop
from utils.xtts.rates import RATE

CORPUS, AUDIO, SAMPLE, DVAE, CODES, GPT, EARS, VOCODER, VOICE, CHECKS = (
    "corpus audio sample dvae codes gpt ears vocoder voice checks".split()
)


def choose_takes(shop: Workshop) -> dict[str, Any]:
    """Choose what is spoken by whom."""
    takes = corpus.takes(shop.recipe.corpus)
    corpus.write_takes(shop.folder(CORPUS), takes)
    kinds = {(take.kind, take.split) for take in takes}
    counted = {f"{kind}s_{split}": len(recording.chosen(takes, kind, split)) for kind, split in sorted(kinds)}
    return {**counted, "texts": len({take.text for take in takes}), "voices": len(speakers.SPEAKERS)}


def record_takes(shop: Workshop) -> dict[str, Any]:
    """Let espeak-ng speak them, and list them for both lessons."""
    folder, takes = shop.folder(AUDIO), corpus.read_takes(shop.folder(CORPUS))
    make_folder(folder)
    speakers.refuse_alike()
    seconds = recording.record(takes, folder, shop.progress(AUDIO))
    for name in prompts.LISTS:
        kind: corpus.Kind = "phrase" if name == "phrases" else "sentence"
        train, judged = prompts.LISTS[name]
        own = recording.chosen(takes, kind, "train")
        if kind == "sentence":
            pieces = recording.chosen(takes, "phrase", "train")
            own += pieces[: round(shop.recipe.corpus.mixed * len(pieces))]
        recording.write_list(folder, train, own)
        recording.write_list(folder, judged, recording.chosen(takes, kind, "eval"))
    return {"clips": len(takes), "hours": round(seconds / 3600, 3), "rate": RATE}


def check_voice(shop: Workshop) -> dict[str, Any]:
    """Measure the finished voice."""
    return measuring.measure(assembling.voice_folder(shop.root), shop.recipe.checks, shop.progress(CHECKS))


STAGES = (
    Stage(CORPUS, (), ("corpus",), choose_takes, (corpus.SENTENCES,)),
    Stage(AUDIO, (CORPUS,), (), record_takes),
    Stage(SAMPLE, (), (), sample_recording.record_sample, (corpus.SENTENCES,)),
    Stage(DVAE, (AUDIO,), ("dvae",), codes.learn_codes),
    Stage(CODES, (DVAE,), ("codes",), prompts.encode_all),
    Stage(GPT, (CODES,), ("gpt",), lessons.teach),
    Stage(EARS, (AUDIO,), ("ears",), ears.learn_voices),
    Stage(VOCODER, (GPT, EARS), ("vocoder",), sounding.learn_to_sound),
    Stage(VOICE, (VOCODER,), (), assembling.assemble),
    Stage(CHECKS, (VOICE,), ("checks",), check_voice),
)
