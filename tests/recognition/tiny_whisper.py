"""A Whisper with random weights, small enough to be made on the spot, in the folder that faster-whisper reads.

Its vocabulary is laid out like that of the real ones, down to the empty symbol by which CTranslate2 knows that one is
multilingual. What it writes are random Amharic syllables.
"""

import itertools
import json
import shutil
from pathlib import Path

from utils.core.languages import WHISPER_CODES

TEXT_SYMBOLS, SYMBOLS = 50_257, 51_865
LANGUAGES = WHISPER_CODES - {"yue"}  # the newest, which the smaller ones do not know
SYLLABLES = [chr(code) for code in range(0x1200, 0x1248) if code != 0x1207]


def make_whisper(folder: Path, *, endless: bool = False) -> Path:
    """Write a model in the layout of transformers, convert it, and return the converted folder.

    The output of an endless one never comes to an end by itself.
    """
    import torch
    import transformers
    from ctranslate2.converters import TransformersConverter

    original = folder / "original"
    original.mkdir(parents=True)
    _write_tokenizer(original)
    torch.manual_seed(0)
    # fmt: off
    config = transformers.WhisperConfig(
        vocab_size=SYMBOLS, d_model=16, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16,
        bos_token_id=TEXT_SYMBOLS, eos_token_id=TEXT_SYMBOLS, pad_token_id=TEXT_SYMBOLS,
        decoder_start_token_id=TEXT_SYMBOLS + 1, suppress_tokens=[], begin_suppress_tokens=[],
        init_std=0.5,  # enough for the audio to matter
    )
    # fmt: on
    model = transformers.WhisperForConditionalGeneration(config)
    with torch.no_grad():
        model.proj_out.weight[TEXT_SYMBOLS] = 0 if endless else 8 * model.proj_out.weight[0]
    model.save_pretrained(original)
    _name_languages(original / "generation_config.json")
    converter = TransformersConverter(str(original), copy_files=["tokenizer.json"])
    return Path(converter.convert(str(folder / "converted"), quantization="int8"))


def with_processor(original: Path, copy: Path) -> Path:
    """Copy a model in the layout of transformers with what its pipeline needs."""
    import transformers

    transformers.WhisperFeatureExtractor().save_pretrained(shutil.copytree(original, copy))  # type: ignore[no-untyped-call]
    path, tasks = copy / "generation_config.json", {"translate": 50_358, "transcribe": 50_359}
    settings = json.loads(path.read_text()) | {"task_to_id": tasks, "is_multilingual": True}
    path.write_text(json.dumps(settings | {"no_timestamps_token_id": 50_363, "max_length": 60}))
    return copy


def _name_languages(path: Path) -> None:
    """Say which symbols are languages, which is what a detection chooses from."""
    symbols = {f"<|{code}|>": TEXT_SYMBOLS + 2 + index for index, code in enumerate(sorted(LANGUAGES))}
    settings = json.loads(path.read_text(encoding="utf-8")) | {"lang_to_id": symbols}
    del settings["_from_model_config"]  # else the file is not read
    path.write_text(json.dumps(settings), encoding="utf-8")


def _write_tokenizer(folder: Path) -> None:
    import tokenizers
    import transformers
    from tokenizers import decoders, models, pre_tokenizers

    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = (" " + "".join(pair) for pair in itertools.product(SYLLABLES, repeat=3))
    spelled = (split.pre_tokenize_str(word)[0][0] for word in words)
    symbols = [*sorted(split.alphabet()), *itertools.islice(spelled, TEXT_SYMBOLS - 257), ""]
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab={symbol: i for i, symbol in enumerate(symbols)}, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = split, decoders.ByteLevel()
    tasks = ["translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps"]
    special = ["endoftext", "startoftranscript", *sorted(LANGUAGES), *tasks]
    tokenizer.add_special_tokens([tokenizers.AddedToken(f"<|{name}|>", special=True) for name in special])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")  # type: ignore[no-untyped-call]
    fast.save_pretrained(folder)
