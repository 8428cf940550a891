"""Copy-synthesis: real speech through more and more of a voice, to see where it is lost.

* ``mel``: the mel of the DVAE, made audible by Griffin-Lim; what that alone costs.
* ``codes``: the same after encoding and decoding.
* ``latents``: the true codes through the GPT, and the vocoder's sound of its latents.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tools.untrained import new_dvae
from utils.media.audio import Samples
from utils.media.rates import RATE
from utils.speech.loading import open_model
from utils.speech.voices import ConditioningSettings, encode_speaker
from utils.xtts.codec import AudioEncoder
from utils.xtts.files import DVAE_FILE, MEL_FILE
from utils.xtts.model import load_gpt
from utils.xtts.narrow_vocoder import without_silent_channels
from utils.xtts.tokenizer import Tokenizer

FFT, HOP, HIGHEST = 1024, 256, 8_000.0  # of the DVAE's mel
ITERATIONS = 32  # of Griffin-Lim


class CopySynthesis:
    """All parts of a voice.

    Args:
        folder: The voice.
        reference: Clip of the speaker.
    """

    def __init__(self, folder: Path, reference: Path) -> None:
        self.encoder = AudioEncoder.load(folder)
        self.stats = torch.load(folder / MEL_FILE, weights_only=True).float()
        weights = torch.load(folder / DVAE_FILE, weights_only=True)
        sizes = len(weights["encoder.0.0.weight"]), *reversed(weights["codebook.embed"].shape)
        self.dvae: Any = new_dvae(*sizes).eval()
        self.dvae.load_state_dict(weights)
        self.tokenizer = Tokenizer.load(folder)
        self.gpt: Any = load_gpt(folder, self.tokenizer).eval()
        model = open_model(folder)
        self.vocoder: Any = model.vocoder
        self.vocoder.waveform_decoder = without_silent_channels(self.vocoder)
        self.speaker = encode_speaker(model, [reference], ConditioningSettings.of(folder))

    @torch.inference_mode()
    def copies(self, text: str, sound: Samples) -> dict[str, tuple[Samples, int]]:
        """Return copies of speech at 22,050 Hz with the sample rate of each."""
        from TTS.tts.layers.xtts.dvae import dvae_wav_to_mel

        mel = dvae_wav_to_mel(torch.from_numpy(sound)[None], mel_norms=self.stats)
        mel = mel[..., : mel.shape[-1] // 4 * 4]
        codes = torch.from_numpy(self.encoder.encode([sound])[0].codes.astype(np.int64))[None]
        decoded, _ = self.dvae.decode(codes)
        return {
            "mel": (self._griffin_lim(mel), RATE),
            "codes": (self._griffin_lim(decoded), RATE),
            "latents": (self._vocoded(text, codes), int(self.vocoder.output_sample_rate)),
        }

    def _vocoded(self, text: str, codes: Tensor) -> Samples:
        ids = torch.tensor(self.tokenizer.encode(text, "am"))[None]
        latents = self.gpt(
            ids,
            torch.tensor([ids.shape[1]]),
            codes,
            torch.tensor([codes.shape[1] * int(self.gpt.code_stride_len)]),
            cond_latents=self.speaker["prompt"].float(),
            return_latent=True,
        )
        made: Samples = self.vocoder(latents, g=self.speaker["embedding"].float()).flatten().numpy()
        return made

    def _griffin_lim(self, mel: Tensor) -> Samples:
        import torchaudio

        bands = torchaudio.functional.melscale_fbanks(FFT // 2 + 1, 0.0, HIGHEST, len(self.stats), RATE, norm="slaney")
        power = torch.exp(mel[0] * self.stats[:, None])
        spectrum = (torch.linalg.pinv(bands.T) @ power).clamp(min=1e-9)
        torch.manual_seed(0)
        sound = torchaudio.functional.griffinlim(
            spectrum, torch.hann_window(FFT), FFT, HOP, FFT, 2.0, ITERATIONS, momentum=0.99, length=None, rand_init=True
        )
        made: Samples = sound.numpy().astype(np.float32)
        return made
