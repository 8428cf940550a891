"""The stages of the embedded voice, from sentences to a folder that speaks and the figures about it."""

from typing import Any

from tools.tiny_voice import (
    assemble,
    audio_stage,
    codes_stage,
    corpus,
    dvae_stage,
    gpt_stage,
    measure,
    sample_recording,
    speaker_encoder,
    speakers,
    vocoder,
)
from tools.tiny_voice.stages import Stage, Workshop
from utils.core.storage import make_folder
from utils.media.rates import RATE

CORPUS, AUDIO, SAMPLE, DVAE, CODES, GPT, EARS, VOCODER, VOICE, CHECKS = (
    "corpus audio sample dvae codes gpt ears vocoder voice checks".split()
)


def choose_takes(shop: Workshop) -> dict[str, Any]:
    """Choose what is spoken by whom."""
    takes = corpus.takes(shop.recipe.corpus)
    corpus.write_takes(shop.folder(CORPUS), takes)
    kinds = {(take.kind, take.split) for take in takes}
    counted = {f"{kind}s_{split}": len(audio_stage.chosen(takes, kind, split)) for kind, split in sorted(kinds)}
    return {**counted, "texts": len({take.text for take in takes}), "voices": len(speakers.SPEAKERS)}


def record_takes(shop: Workshop) -> dict[str, Any]:
    """Let espeak-ng speak them, and list them for both lessons."""
    folder, takes = shop.folder(AUDIO), corpus.read_takes(shop.folder(CORPUS))
    make_folder(folder)
    speakers.refuse_alike()
    seconds = audio_stage.record(takes, folder, shop.progress(AUDIO))
    for name in codes_stage.LISTS:
        kind: corpus.Kind = "phrase" if name == "phrases" else "sentence"
        train, judged = codes_stage.LISTS[name]
        own = audio_stage.chosen(takes, kind, "train")
        if kind == "sentence":
            pieces = audio_stage.chosen(takes, "phrase", "train")
            own += pieces[: round(shop.recipe.corpus.mixed * len(pieces))]
        audio_stage.write_list(folder, train, own)
        audio_stage.write_list(folder, judged, audio_stage.chosen(takes, kind, "eval"))
    return {"clips": len(takes), "hours": round(seconds / 3600, 3), "rate": RATE}


def check_voice(shop: Workshop) -> dict[str, Any]:
    """Measure the finished voice."""
    return measure.measure(assemble.voice_folder(shop.root), shop.recipe.checks, shop.progress(CHECKS))


STAGES = (
    Stage(CORPUS, (), ("corpus",), choose_takes, (corpus.SENTENCES,)),
    Stage(AUDIO, (CORPUS,), (), record_takes),
    Stage(SAMPLE, (), (), sample_recording.record_sample, (corpus.SENTENCES,)),
    Stage(DVAE, (AUDIO,), ("dvae",), dvae_stage.learn_codes),
    Stage(CODES, (DVAE,), ("codes",), codes_stage.encode_all),
    Stage(GPT, (CODES,), ("gpt",), gpt_stage.teach),
    Stage(EARS, (AUDIO,), ("ears",), speaker_encoder.learn_voices),
    Stage(VOCODER, (GPT, EARS), ("vocoder",), vocoder.learn_to_sound),
    Stage(VOICE, (VOCODER,), (), assemble.assemble),
    Stage(CHECKS, (VOICE,), ("checks",), check_voice),
)
