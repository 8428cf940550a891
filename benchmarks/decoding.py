"""Compare our decoding with coqui's: `python benchmarks/decoding.py [--layers 6 --dim 512 --heads 8]`.

Both sides say the same number of codes with the same random weights, whose score for the end is pushed out of reach.
They work in turn, and the fastest round of each counts, since other work on the machine only ever slows one down.
coqui generates and then passes once more over the sentence for what the vocoder reads; ours has that already.
"""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch

from benchmarks.speech_options import conclude, parser
from tests.speech.small_decoder import prepared
from utils.config import SpeechConfig
from utils.speech.decoder import Decoder
from utils.speech.layers import Precision
from utils.speech.types import Sentence
from utils.xtts.modules import GPT
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
}
UNSAID = -1e4  # the score of the code that ends a sentence
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8")
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
# Decoding, side by side with plain coqui-tts

{hardware}, {date}, {software}; {threads} threads.
Command: `{command}`

GPT of {layers} layers x {dim} with random weights, text of {tokens} tokens, {codes} codes forced, best of {rounds}
rounds in turn. The reading of the text and the voice is timed apart, as the time to the first code.

{table}
coqui's second pass over the sentence takes {second:.1f} ms a code.
"""


class Timed(NamedTuple):
    """What one sentence, or several together, took.

    Attributes:
        first: Seconds until the first code.
        whole: Seconds until the last.
        codes: Of each sentence.
    """

    first: float
    whole: float
    codes: int

    @property
    def step(self) -> float:
        """Return the seconds of each further code."""
        return (self.whole - self.first) / (self.codes - 1)

    def better(self, other: "Timed | None") -> "Timed":
        """Take the faster of two rounds; each time by itself, since a difference would win by a slow first code."""
        return self if other is None else Timed(min(self.first, other.first), min(self.whole, other.whole), self.codes)


def built(arguments: argparse.Namespace) -> Any:  # noqa: ANN401  # coqui's class
    """Return coqui's GPT with random weights, which never ends a sentence by itself."""
    torch.manual_seed(0)
    gpt = GPT(
        layers=arguments.layers, model_dim=arguments.dim, heads=arguments.heads, number_text_tokens=6681,
        start_text_token=261, stop_text_token=0, num_audio_tokens=1026, start_audio_token=1024, stop_audio_token=1025,
        max_text_tokens=402, max_mel_tokens=605, max_prompt_tokens=70, use_perceiver_resampler=True,
        code_stride_len=1024,
    ).eval()  # fmt: skip
    with torch.no_grad():
        gpt.mel_head.bias[gpt.stop_audio_token] = UNSAID
    return gpt.to(arguments.device)


class Coqui:
    """coqui's generate and its second pass."""

    def __init__(self, gpt: Any, arguments: argparse.Namespace) -> None:  # noqa: ANN401  # coqui's class
        self.gpt, self.codes, self.device = gpt, int(arguments.codes), str(arguments.device)
        self.ids = torch.randint(1, 6000, (1, TOKENS), device=self.device)
        self.prompt = torch.randn(1, 32, arguments.dim, device=self.device) * 0.1

    @torch.no_grad()
    def generate(self) -> Timed:
        """Time a sentence of one code and a long one."""
        first = clocked(lambda: self.speak(1), self.device)
        return Timed(first, clocked(lambda: self.speak(self.codes), self.device), self.codes)

    def speak(self, codes: int) -> None:
        """Generate a sentence of this many codes."""
        with prepared(self.gpt, codes):
            said = self.gpt.generate(cond_latents=self.prompt, text_inputs=self.ids, output_attentions=False, **COQUI)
        if said.shape[1] != codes:
            raise SystemExit(f"coqui said {said.shape[1]} codes instead of {codes}.")

    @torch.no_grad()
    def second(self) -> float:
        """Time the second pass, in seconds a code."""
        codes = torch.randint(0, 1024, (1, self.codes), device=self.device)
        lengths = torch.tensor([TOKENS]), torch.tensor([self.codes * 1024])

        def again() -> None:
            self.gpt(self.ids, lengths[0], codes, lengths[1], cond_latents=self.prompt, return_latent=True)

        return clocked(again, self.device) / self.codes


def ours(decoder: Decoder, coqui: Coqui, sentences: int) -> Timed:
    """Time sentences that are said together."""
    ids = coqui.ids[0].tolist()
    given = [
        Sentence(TokenizedText("", "", "", "", (), tuple(ids[: TOKENS - n]), ()), seed=n, max_codes=coqui.codes)
        for n in range(sentences)
    ]
    with closing(decoder.request(coqui.prompt, SpeechConfig(batch_size=sentences))) as request:
        made = [request.add(sentence) for sentence in given]
        first = clocked(lambda: request.wait(lambda: bool(made[0].codes)), coqui.device)
        rest = clocked(lambda: request.wait(lambda: all(each.finished for each in made)), coqui.device)
    return Timed(first, first + rest, coqui.codes)


def clocked(work: Callable[[], object], device: str) -> float:
    """Return the seconds that something takes."""
    began = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def compare(arguments: argparse.Namespace) -> tuple[list[list[str]], float]:
    """Let both sides work in turn and give a row for each; and the seconds a code of the second pass."""
    coqui = Coqui(built(arguments), arguments)
    theirs, second = coqui.generate(), coqui.second()
    found: dict[tuple[str, int], Timed] = {}
    for precision in arguments.precisions:
        decoder = Decoder(coqui.gpt, precision, arguments.device)
        for sentences in arguments.sentences:
            for _ in range(arguments.rounds):
                theirs, second = coqui.generate().better(theirs), min(coqui.second(), second)
                found[precision, sentences] = ours(decoder, coqui, sentences).better(found.get((precision, sentences)))
            print(f"{precision}, {sentences}: {found[precision, sentences]}, coqui {theirs}", flush=True)
        del decoder
    rows = [["coqui's generate", "1", *figures(theirs, 1), "", ""]]
    for (precision, sentences), timed in found.items():
        each = timed.step / sentences
        ratios = [f"{time / each:.2f} x" for time in (theirs.step, theirs.step + second)]
        rows.append([precision, str(sentences), *figures(timed, sentences), *ratios])
    return rows, second


def figures(timed: Timed, sentences: int) -> list[str]:
    """Write what was timed in milliseconds."""
    return [f"{1e3 * seconds:.2f}" for seconds in (timed.step, timed.step / sentences, timed.first)]


def main() -> None:
    """Compare and show the table."""
    options = parser(__doc__ or "", codes=64, precisions=PRECISIONS)
    options.add_argument("--sentences", type=int, nargs="+", default=[1, 4, 8], help="sentences said together (1 4 8)")
    arguments = options.parse_args()
    torch.set_num_threads(arguments.threads)
    rows, second = compare(arguments)
    conclude("decoding", PAGE, arguments, HEAD, rows, tokens=TOKENS, second=1e3 * second)


if __name__ == "__main__":
    main()
