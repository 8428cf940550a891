"""Fine-tune the embedded voice on clips of your own, in an empty folder."""

from pathlib import Path

import numpy as np

from utils.config import TrainConfig
from utils.core.wording import describe
from utils.dataset.metadata import HEADER, read_clips
from utils.media import audio
from utils.training.fit import fit
from utils.training.preparation import prepare_data
from utils.training_optimizations import TrainingOptimizer
from utils.xtts.base_models import ModelSource
from utils.xtts.model import load_gpt

folder = Path("voice")
(folder / "wavs").mkdir(parents=True)
for split, pitch in {"train": 20, "eval": 25}.items():  # two tones instead of recordings
    audio.save(folder / f"wavs/{split}.wav", np.sin(np.arange(44_100) / pitch).astype("f4") / 4, 22_050)
    (folder / f"metadata_{split}.csv").write_text(f"{HEADER}\nwavs/{split}.wav|ሰላም ለዓለም|me\n", encoding="utf-8")
lists = {f"{split}_csv": str(folder / f"metadata_{split}.csv") for split in ("train", "eval")}
settings = TrainConfig(version="tiny", max_steps=2, score_sentences=0, **lists)

clips = read_clips(settings, folder)
data = prepare_data(clips, (), settings, folder, ModelSource(folder / "models", folder / "consent.json"))
gpt = load_gpt(data.base.folder, data.tokenizer)
TrainingOptimizer(settings).apply(gpt)
result = fit(gpt, data, settings, folder, report=lambda fact: print(describe(fact)))
print(f"{result.updates} updates, evaluation loss {result.eval_losses['loss']:.3f}")
