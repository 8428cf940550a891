"""CTC models with random weights, small enough to be made on the spot; they write random Amharic syllables."""

import json
from pathlib import Path

LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ሀለሐመሠረሰሸቀበ"]


def make_w2v_bert(folder: Path) -> Path:
    """Write a tiny w2v-BERT with random weights, as Ethio-ASR is laid out."""
    import torch
    import transformers

    torch.manual_seed(0)
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(json.dumps({letter: number for number, letter in enumerate(LETTERS)}), encoding="utf-8")
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(vocabulary))  # type: ignore[no-untyped-call]
    extractor = transformers.SeamlessM4TFeatureExtractor()  # type: ignore[no-untyped-call]
    transformers.Wav2Vec2BertProcessor(extractor, tokenizer).save_pretrained(folder)  # type: ignore[no-untyped-call]
    # fmt: off
    config = transformers.Wav2Vec2BertConfig(
        vocab_size=len(LETTERS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        initializer_range=1.0, add_adapter=False,
    )
    # fmt: on
    transformers.Wav2Vec2BertForCTC(config).save_pretrained(folder)
    return folder


def make_ctc(folder: Path, *, adapters: bool) -> Path:
    """Write a tiny Wav2Vec2 with random weights; with adapters it is laid out like MMS."""
    import torch
    import transformers
    from safetensors.torch import save_file

    torch.manual_seed(0)
    letters = {letter: number for number, letter in enumerate(LETTERS)}
    vocabulary = folder / "vocab.json"
    vocabulary.write_text(json.dumps({"eng": letters, "amh": letters} if adapters else letters), encoding="utf-8")
    language = "eng" if adapters else None
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(vocabulary), target_lang=language)  # type: ignore[no-untyped-call]
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True)  # type: ignore[no-untyped-call]
    transformers.Wav2Vec2Processor(extractor, tokenizer).save_pretrained(folder)  # type: ignore[no-untyped-call]
    # fmt: off
    config = transformers.Wav2Vec2Config(
        vocab_size=len(LETTERS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        conv_dim=(8,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, initializer_range=1.0,
        feat_extract_norm="layer", do_stable_layer_norm=True, adapter_attn_dim=4 if adapters else None,
    )
    # fmt: on
    model = transformers.Wav2Vec2ForCTC(config)
    model.save_pretrained(folder)
    if adapters:
        weights = {name: torch.randn_like(weight) for name, weight in model._get_adapters().items()}  # type: ignore[no-untyped-call]
        save_file(weights, folder / "adapter.amh.safetensors")
    return folder
