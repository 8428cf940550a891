"""The stages of the embedded voice, from sentences to a folder that speaks and the figures about it."""

from typing import Any

from tools.tiny_voice import audio, checks, codes, corpus, dvae, gpt, sample, speaker_encoder, speakers, vocoder, voice
from tools.tiny_voice.stages import BuildContext, Stage
from utils.core.storage import make_folder
from utils.media.rates import RATE

CORPUS, AUDIO, SAMPLE, DVAE, CODES, GPT, SPEAKER_ENCODER, VOCODER, VOICE, CHECKS = (
    "corpus audio sample dvae codes gpt speaker_encoder vocoder voice checks".split()
)


def choose_takes(context: BuildContext) -> dict[str, Any]:
    """Choose what is spoken by whom."""
    takes = corpus.choose_takes(context.recipe.corpus)
    corpus.write_takes(context.folder(CORPUS), takes)
    kinds = {(take.kind, take.split) for take in takes}
    counted = {f"{kind}s_{split}": len(audio.select(takes, kind, split)) for kind, split in sorted(kinds)}
    return {**counted, "texts": len({take.text for take in takes}), "voices": len(speakers.SPEAKERS)}


def record_takes(context: BuildContext) -> dict[str, Any]:
    """Let espeak-ng speak them, and list them for both lessons."""
    folder, takes = context.folder(AUDIO), corpus.read_takes(context.folder(CORPUS))
    make_folder(folder)
    speakers.refuse_equal_voices()
    seconds = audio.render_all(takes, folder, context.progress(AUDIO))
    for name in codes.LISTS:
        kind: corpus.Kind = "phrase" if name == "phrases" else "sentence"
        train, judged = codes.LISTS[name]
        own = audio.select(takes, kind, "train")
        if kind == "sentence":
            pieces = audio.select(takes, "phrase", "train")
            own += pieces[: round(context.recipe.corpus.mixed * len(pieces))]
        audio.write_list(folder, train, own)
        audio.write_list(folder, judged, audio.select(takes, kind, "eval"))
    return {"clips": len(takes), "hours": round(seconds / 3600, 3), "rate": RATE}


def check_voice(context: BuildContext) -> dict[str, Any]:
    """Measure the finished voice."""
    return checks.measure(voice.voice_folder(context.root), context.recipe.checks, context.progress(CHECKS))


STAGES = (
    Stage(CORPUS, (), ("corpus",), choose_takes, (corpus.SENTENCES,)),
    Stage(AUDIO, (CORPUS,), (), record_takes),
    Stage(SAMPLE, (), (), sample.record_sample, (corpus.SENTENCES,)),
    Stage(DVAE, (AUDIO,), ("dvae",), dvae.train_dvae, continues=True),
    Stage(CODES, (DVAE,), ("codes",), codes.encode_all),
    Stage(GPT, (CODES,), ("gpt",), gpt.train_gpt_stage, continues=True),
    Stage(SPEAKER_ENCODER, (AUDIO,), ("speaker_encoder",), speaker_encoder.train_speaker_encoder, continues=True),
    Stage(VOCODER, (GPT, SPEAKER_ENCODER), ("vocoder",), vocoder.train_vocoder, continues=True),
    Stage(VOICE, (VOCODER,), (), voice.assemble),
    Stage(CHECKS, (VOICE,), ("checks",), check_voice),
)
