"""The decoder generates the codes of coqui's GPT, however many sentences it generates at once."""

import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import Any

import pytest
import torch

from tests.rehearsal import Tape
from tests.speech.small_decoder import GREEDY, SAMPLED, TEXTS, coqui_codes, prompt, sentence, sentences, talking_gpt
from tests.training.small_gpt import START_AUDIO
from utils.config import SpeechConfig
from utils.core.errors import TextError
from utils.speech import steps
from utils.speech.decoder import Decoder
from utils.speech.precision import computes_bf16
from utils.speech.types import Generation, Sentence

needs_bf16 = pytest.mark.skipif(not computes_bf16("gpt"), reason="this processor does not multiply bf16")
SAMPLED_AND_GREEDY = pytest.mark.parametrize(
    "config", [SAMPLED, SpeechConfig(top_k=1, repetition_penalty=2.0)], ids=["sampled", "greedy"]
)


@pytest.fixture(scope="module")
def gpt() -> Any:
    return talking_gpt(3, end=3.0)


@pytest.fixture(scope="module")
def decoder(gpt: Any) -> Decoder:
    return Decoder(gpt)


def generate_alone(decoder: Decoder, given: Sentence | None = None, config: SpeechConfig = SAMPLED) -> Generation:
    return decoder.generate([given or sentence()], prompt(), config)[0]


def latents_of(generation: Generation) -> torch.Tensor:
    return torch.stack(generation.latents)


def second_pass(gpt: Any, ids: list[int], codes: list[int]) -> torch.Tensor:
    """Return the latents that coqui's Xtts.inference gives its vocoder for codes."""
    lengths = torch.tensor([len(ids)]), torch.tensor([len(codes) * gpt.code_stride_len])
    with torch.no_grad():
        texts, audio = torch.tensor([ids]), torch.tensor([codes])
        latents: torch.Tensor = gpt(texts, lengths[0], audio, lengths[1], cond_latents=prompt(), return_latent=True)
    return latents[0]


def coqui_penalty_decoder(gpt: Any) -> Decoder:
    """Return a decoder that penalizes coqui's made-up prefix."""
    decoder = Decoder(gpt)
    decoder.used_codes = (1, START_AUDIO)
    return decoder


@pytest.mark.parametrize("penalty", [1.0, 2.0, 10.0])
def test_greedy_codes_are_those_of_coquis_generate(penalty: float) -> None:
    gpt = talking_gpt(4, end=3.0 if penalty == 2.0 else -1e4)
    config = SpeechConfig(top_k=1, repetition_penalty=penalty)
    wanted = coqui_codes(gpt, prompt(), TEXTS[0], 40, do_sample=False, num_beams=1, repetition_penalty=penalty)
    assert generate_alone(coqui_penalty_decoder(gpt), sentence(limit=40), config).codes == wanted.tolist()


@SAMPLED_AND_GREEDY
def test_latents_are_those_of_coquis_second_pass_and_of_scoring(
    gpt: Any, decoder: Decoder, config: SpeechConfig
) -> None:
    generation = generate_alone(decoder, sentence(limit=25), config)
    wanted = second_pass(gpt, TEXTS[0], generation.codes)
    torch.testing.assert_close(latents_of(generation), wanted, atol=1e-3, rtol=0)
    assert wanted.abs().max() > 1  # a thousandth of it is little
    codes = torch.tensor(generation.codes)
    scores, latents = decoder.score(sentence(), prompt(), codes)
    torch.testing.assert_close(latents[:-1], latents_of(generation), atol=1e-4, rtol=0)
    logprobs = scores[:-1].log_softmax(1).gather(1, codes[:, None])
    assert sum(generation.logprobs) == pytest.approx(float(logprobs.sum()), abs=1e-3)


def test_code_1_is_not_penalized_before_it_was_used() -> None:
    gpt = talking_gpt()
    with torch.no_grad():
        gpt.mel_head.bias[1] = 30
    assert generate_alone(Decoder(gpt), sentence(limit=1), GREEDY).codes == [1]
    assert generate_alone(coqui_penalty_decoder(gpt), sentence(limit=1), GREEDY).codes != [1]


@pytest.mark.parametrize("precision", ["fp32", "int8", pytest.param("bf16", marks=needs_bf16)])
def test_each_sentence_is_the_same_alone_and_in_a_batch(gpt: Any, precision: Any) -> None:
    decoder, config = Decoder(gpt, precision), SpeechConfig(temperature=0.6, top_k=7, top_p=0.5)
    together = decoder.generate(sentences(8, 9), prompt(), config)
    for each, generation in zip(sentences(8, 9), together, strict=True):
        again = generate_alone(decoder, each, config)
        assert generation.codes == again.codes
        near = 1e-4 if precision == "fp32" else 0.05
        torch.testing.assert_close(latents_of(generation), latents_of(again), atol=near, rtol=0)
        assert sum(generation.logprobs) == pytest.approx(sum(again.logprobs), abs=0.1)
    assert len({len(generation.codes) for generation in together}) > 1  # some ended before the others


class TapeRecorder:
    """Records steps as on a GPU, and counts."""

    def __init__(self) -> None:
        self.captures = self.replays = 0
        self.tapes: weakref.WeakSet[Tape] = weakref.WeakSet()  # those that are kept

    def __call__(self, compute: Callable[[], Any], state: Sequence[torch.Tensor], _pool: object) -> Callable[[], Any]:
        before, tape = [each.clone() for each in state], Tape()
        with tape:
            outputs = compute()
        for each, old in zip(state, before, strict=True):
            each.copy_(old)
        self.captures += 1
        self.tapes.add(tape)

        def replay() -> Any:
            self.replays += 1
            tape.replay()
            return outputs

        return replay


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_replayed_steps_are_the_steps_bit_for_bit(precision: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, eager, graphed = (Decoder(talking_gpt(2, end=-2.0), precision) for _ in range(3))
    eager.uses_graphs = graphed.uses_graphs = True
    configs = [SAMPLED, GREEDY, SpeechConfig(temperature=0.6, top_k=7, top_p=0.5)]
    given = [sentence(TEXTS[n % 4], seed=n, limit=20 + 37 * n % 230) for n in range(15)]

    def generate(decoder: Decoder) -> list[Generation]:
        """Let the sentences of three requests join and leave."""
        with ExitStack() as stack:
            requests = [stack.enter_context(closing(decoder.request(prompt(), config))) for config in configs]
            made = [requests[n % 3].add(each) for n, each in enumerate(given)]
            requests[0].wait(lambda: all(each.finished for each in made))
        return made

    codes, wanted = [each.codes for each in generate(plain)], generate(eager)  # each step is computed
    monkeypatch.setattr(steps, "capture", recorder := TapeRecorder())
    for _ in range(2):
        captures = recorder.captures
        for made, one, exact in zip(generate(graphed), wanted, codes, strict=True):
            assert made.codes == one.codes == exact
            assert made.logprobs == one.logprobs
            assert torch.equal(latents_of(made), latents_of(one))
    assert recorder.replays > 2 * 200
    assert captures == recorder.captures < 30  # the second time, all graphs are there


def test_a_text_that_is_too_long_is_refused_before_the_first_step(decoder: Decoder) -> None:
    with pytest.raises(TextError, match="403"):
        decoder.generate([sentence(), sentence([5] * 403)], prompt(), GREEDY)


def test_a_limit_beyond_the_model_is_the_models() -> None:
    short = talking_gpt(end=-1e4, audio_positions=23)
    generation = generate_alone(Decoder(short), sentence(limit=10_000))
    assert len(generation.codes) == short.max_gen_mel_tokens
    assert not generation.ended


def test_the_number_of_graphs_is_limited(gpt: Any, decoder: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    graphed = Decoder(gpt)
    graphed.uses_graphs = True
    monkeypatch.setattr(steps, "MAX_GRAPHS", 2)
    monkeypatch.setattr(steps, "capture", recorder := TapeRecorder())
    for top_k in (50, 100, 200, 50):  # each a multiple of 64
        config = SpeechConfig(top_k=top_k)
        assert generate_alone(graphed, config=config).codes == generate_alone(decoder, config=config).codes
    assert recorder.captures == 4
    assert len(recorder.tapes) == 2


@pytest.mark.parametrize(
    ("precision", "near"), [("fp32", 1e-4), ("int8", 0.5), pytest.param("bf16", 0.1, marks=needs_bf16)]
)
def test_the_scores_of_given_codes_are_those_of_coqui(gpt: Any, precision: Any, near: float) -> None:
    codes = [3, 141, 59, 26, 535, 897]
    scores, _ = Decoder(gpt, precision).score(sentence(), prompt(), torch.tensor(codes))
    with torch.no_grad():
        wanted = gpt.mel_head(second_pass(gpt, TEXTS[0], [*codes, 7]))
    torch.testing.assert_close(scores, wanted, atol=near, rtol=0)
    assert scores.std() > 1  # the tolerances are small beside it
