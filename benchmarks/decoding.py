"""Compare our decoding with coqui's: `python benchmarks/decoding.py [--layers 6 --dim 512]`.

Both sides say the same number of codes with the same random weights, whose score for the end is pushed out of reach.
They work in turn, and the fastest round of each counts, since other work on the machine only ever slows one down.
coqui generates and then passes once more over the sentence for what the vocoder reads; ours has that already.
"""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch

from benchmarks.record import conclude, faster, parser
from benchmarks.training_material import heads
from utils.config import SpeechConfig
from utils.speech.decoder import Decoder
from utils.speech.types import Sentence
from utils.training.model_size import ModelSize, random_gpt
from utils.xtts.model import quiet_transformers
from utils.xtts.tokenizer import TokenizedText

TOKENS = 60  # of the text: a sentence of six seconds
COQUI: dict[str, Any] = {  # the settings of coqui's Xtts.inference
    "do_sample": True,
    "temperature": 0.75,
    "length_penalty": 1.0,
    "repetition_penalty": 10.0,
    "top_k": 50,
    "top_p": 0.85,
    "num_return_sequences": 1,
    "num_beams": 1,
    "output_attentions": False,
}
UNSAID = -1e4  # the score of the code that ends a sentence
HEAD = [
    "",
    "sentences",
    "ms a step",
    "ms a code",
    "first code, ms",
    "coqui's ms a code / ours",
    "the same with second pass",
]
PAGE = """\
Decoding, side by side with plain coqui-tts

GPT of {layers} layers x {dim} with random weights, text of 60 tokens, {codes} codes forced, best of {rounds} rounds in
turn, {threads} threads. The reading of the text and the voice is timed apart, as the time to the first code. coqui's
second pass over the sentence takes {second:.1f} ms a code.
"""

Times = dict[str, float]  # what took how many seconds


class Coqui:
    """coqui's generate and its second pass."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(0)
        self.codes, self.device = int(options.codes), str(options.device)
        gpt: Any = random_gpt(ModelSize(options.layers, options.dim, heads(options))).eval()
        with torch.no_grad():
            gpt.mel_head.bias[gpt.stop_audio_token] = UNSAID
        self.gpt = gpt.to(self.device)
        self.ids = torch.randint(1, 6000, (1, TOKENS), device=self.device)
        self.prompt = torch.randn(1, 32, options.dim, device=self.device) * 0.1

    @torch.no_grad()
    def measure(self) -> Times:
        """Time the first code of a sentence, each further one, and a code of the second pass."""
        first, whole = (self._clocked(partial(self._speak, count)) for count in (1, self.codes))
        codes = torch.randint(0, 1024, (1, self.codes), device=self.device)
        lengths = torch.tensor([TOKENS]), torch.tensor([self.codes * 1024])

        def pass_again() -> None:
            self.gpt(self.ids, lengths[0], codes, lengths[1], cond_latents=self.prompt, return_latent=True)

        return {"first": first, "whole": whole, "second": self._clocked(pass_again) / self.codes}

    def _speak(self, codes: int) -> None:
        with quiet_transformers():
            self.gpt.init_gpt_for_inference()
        self.gpt.max_gen_mel_tokens = codes
        said = self.gpt.generate(cond_latents=self.prompt, text_inputs=self.ids, **COQUI)
        del self.gpt.gpt_inference
        if said.shape[1] != codes:
            raise SystemExit(f"coqui said {said.shape[1]} codes instead of {codes}.")

    def measure_ours(self, decoder: Decoder, sentences: int) -> Times:
        """Time sentences that are said together."""
        ids = self.ids[0].tolist()
        given = [
            Sentence(TokenizedText("", "", "", "", (), tuple(ids[: TOKENS - n]), ()), seed=n, max_codes=self.codes)
            for n in range(sentences)
        ]
        with closing(decoder.request(self.prompt, SpeechConfig(batch_size=sentences))) as request:
            made = [request.add(sentence) for sentence in given]
            first = self._clocked(lambda: request.wait(lambda: bool(made[0].codes)))
            rest = self._clocked(lambda: request.wait(lambda: all(each.finished for each in made)))
        return {"first": first, "whole": first + rest}

    def _clocked(self, work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began


def compare(options: argparse.Namespace) -> None:
    """Let both sides work in turn, and conclude."""
    coqui = Coqui(options)
    theirs: list[Times] = [coqui.measure()]
    ours: dict[tuple[str, int], list[Times]] = {}
    for precision in options.precisions:
        decoder = Decoder(coqui.gpt, precision, options.device)
        for sentences in options.sentences:
            found = ours.setdefault((precision, sentences), [])
            for _ in range(options.rounds):
                theirs.append(coqui.measure())
                found.append(coqui.measure_ours(decoder, sentences))
            print(f"{precision}, {sentences}: {found[-1]}, coqui {theirs[-1]}", flush=True)
        del decoder
    step, first = steps(theirs, options.codes)
    second = min(each["second"] for each in theirs)
    rows = [["coqui's generate", "1", f"{step:.2f}", f"{step:.2f}", f"{first:.2f}", "", ""]]
    for (precision, sentences), found in ours.items():
        together, first = steps(found, options.codes)
        code = together / sentences
        figures = [f"{each:.2f}" for each in (together, code, first)]
        rows.append([precision, str(sentences), *figures, faster(step, code), faster(step + 1e3 * second, code)])
    conclude(f"decoding_{options.layers}x{options.dim}", PAGE, options, HEAD, rows, second=1e3 * second)


def steps(found: list[Times], codes: int) -> tuple[float, float]:
    """Return the milliseconds of each further code and of the first one, from the shortest times."""
    first, whole = (1e3 * min(each[what] for each in found) for what in ("first", "whole"))
    return (whole - first) / (codes - 1), first


def main() -> None:
    """Read the command line, and compare."""
    found = parser(__doc__ or "", layers=30, dim=1024, rounds=2)
    found.add_argument("--codes", type=int, default=64, help="codes of a sentence (64)")
    found.add_argument("--precisions", nargs="+", default=["fp32", "bf16", "int8"], help="of ours (fp32 bf16 int8)")
    found.add_argument("--sentences", type=int, nargs="+", default=[1, 4, 8], help="sentences said together (1 4 8)")
    options = found.parse_args()
    torch.set_num_threads(options.threads)
    compare(options)


if __name__ == "__main__":
    main()
