"""What the decoder says is what coqui's GPT would say, however many texts it says at once."""

import copy
import gc
import weakref
from typing import Any

import pytest
import torch

from tests.speech.small_decoder import TEXTS, asked, prompt, talking_gpt
from tests.training.small_gpt import START_AUDIO, STOP_AUDIO
from utils.core.errors import AmharicTtsError, ConfigError, SpeedupError, TextError, VocabularyError
from utils.speech.decoder import Decoder, Generated
from utils.speech.precision import computes_bf16
from utils.speech.types import Sampling
from utils.training.sample_speaker import lent
from utils.xtts.files import ModelFileError

DRAWN = Sampling(temperature=1.0, repetition_penalty=2.0)
needs_bf16 = pytest.mark.skipif(not computes_bf16("gpt"), reason="this processor does not multiply bf16")


@pytest.fixture(scope="module")
def gpt() -> Any:
    return talking_gpt(3, end=3.0)


@pytest.fixture(scope="module")
def ours(gpt: Any) -> Decoder:
    return Decoder.of(gpt)


def coqui_codes(gpt: Any, ids: list[int], limit: int, **settings: Any) -> torch.Tensor:
    """Return what coqui's generate says without drawing."""
    with lent(gpt, limit), torch.no_grad():
        given = {"do_sample": False, "num_beams": 1, "repetition_penalty": 10.0, **settings}
        codes: torch.Tensor = gpt.generate(cond_latents=prompt(), text_inputs=torch.tensor([ids]), **given)
    return codes[0]


def second_pass(gpt: Any, ids: list[int], codes: torch.Tensor) -> torch.Tensor:
    """Return the latents that coqui's Xtts.inference gives its vocoder for codes."""
    lengths = torch.tensor([len(ids)]), torch.tensor([len(codes) * gpt.code_stride_len])
    with torch.no_grad():
        latents: torch.Tensor = gpt(
            torch.tensor([ids]), lengths[0], codes[None].clone(), lengths[1], cond_latents=prompt(), return_latent=True
        )
    return latents[0]


def in_coquis_way(gpt: Any, precision: Any = "fp32") -> Decoder:
    """Return a decoder that penalises what coqui's made-up prefix says."""
    made = Decoder.of(gpt, precision)
    made.said = (1, START_AUDIO)
    return made


@pytest.mark.parametrize("layers", [2, 6])
@pytest.mark.parametrize("penalty", [1.0, 2.0, 10.0])
def test_without_drawing_it_says_the_codes_of_coquis_generate(layers: int, penalty: float) -> None:
    gpt = talking_gpt(layers, end=3.0 if penalty == 2.0 else -1e4)
    ids = TEXTS[0]
    sampling = Sampling(top_k=1, repetition_penalty=penalty)
    said = in_coquis_way(gpt).generate([asked(ids, sampling, limit=40)])[0]
    assert said.codes.tolist() == coqui_codes(gpt, ids, 40, repetition_penalty=penalty).tolist()


@pytest.mark.parametrize("layers", [2, 6])
@pytest.mark.parametrize("ids", TEXTS[:3], ids=len)
def test_its_latents_are_those_of_coquis_second_pass(layers: int, ids: list[int]) -> None:
    gpt = talking_gpt(layers)
    said = Decoder.of(gpt).generate([asked(ids, DRAWN, limit=25)])[0]
    torch.testing.assert_close(said.latents, second_pass(gpt, ids, said.codes), atol=1e-3, rtol=0)
    assert said.latents.abs().max() > 1  # a thousandth of it is little


def test_the_latent_of_the_code_that_ends_a_sentence_is_there_as_in_coqui(gpt: Any, ours: Decoder) -> None:
    said = ours.generate([asked(limit=60)])[0]
    assert said.ended
    assert said.codes[-1] == STOP_AUDIO
    assert STOP_AUDIO not in said.codes[:-1]
    assert len(said.latents) == len(said.codes)
    torch.testing.assert_close(said.latents, second_pass(gpt, TEXTS[0], said.codes), atol=1e-3, rtol=0)


def test_code_1_is_not_penalised_before_it_was_said() -> None:
    gpt = talking_gpt()
    with torch.no_grad():
        gpt.mel_head.bias[1] = 30
    first = [made.generate([asked(limit=1)])[0].codes.tolist() for made in (Decoder.of(gpt), in_coquis_way(gpt))]
    assert first[0] == [1]
    assert first[1] != [1]
    assert first[1] == coqui_codes(gpt, TEXTS[0], 1).tolist()


@pytest.mark.parametrize("precision", ["fp32", "int8", pytest.param("bf16", marks=needs_bf16)])
def test_each_sentence_is_the_same_alone_and_in_a_batch(gpt: Any, precision: Any) -> None:
    ours = Decoder.of(gpt, precision)
    other = Sampling(temperature=0.6, top_k=7, top_p=0.5)
    requests = [
        asked(ids, [DRAWN, other][number % 2], seed=number, limit=8 + 9 * number) for number, ids in enumerate(TEXTS)
    ]
    together = ours.generate(requests)
    for request, said in zip(requests, together, strict=True):
        alone = ours.generate([request])[0]
        assert said.codes.tolist() == alone.codes.tolist()
        torch.testing.assert_close(said.latents, alone.latents, atol=1e-4 if precision == "fp32" else 0.05, rtol=0)
        assert said.logprob == pytest.approx(alone.logprob, abs=0.1)
    assert len({len(said.codes) for said in together}) > 1  # some ended before the others


def test_a_voice_is_read_once_for_all_that_share_it(ours: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    voices = prompt(0), prompt(1)
    requests = [asked(ids, DRAWN)._replace(prompt=voices[number % 2]) for number, ids in enumerate(TEXTS)]
    alone = [ours.generate([request])[0].codes.tolist() for request in requests]
    lengths: list[int] = []
    original = ours.stack.read

    def counted(sequence: torch.Tensor, *arguments: Any) -> torch.Tensor:
        lengths.append(len(sequence))
        return original(sequence, *arguments)

    monkeypatch.setattr(ours.stack, "read", counted)
    assert [said.codes.tolist() for said in ours.generate(requests)] == alone
    assert lengths == [32, 32, *(len(ids) + 3 for ids in TEXTS)]


def test_the_same_seed_gives_the_same_codes_and_another_seed_others(ours: Decoder) -> None:
    one, same, other = (ours.generate([asked(sampling=DRAWN, seed=seed)])[0].codes.tolist() for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_rooms_that_grow_and_shrink_change_nothing(gpt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [asked(ids, DRAWN, seed=number, limit=10 + 7 * number) for number, ids in enumerate(TEXTS)]
    wanted = Decoder.of(gpt).generate(requests)
    for module in ("kv_cache", "layers"):
        monkeypatch.setattr(f"utils.speech.{module}.STEP", 3)
    assert [said.codes.tolist() for said in Decoder.of(gpt).generate(requests)] == [
        said.codes.tolist() for said in wanted
    ]


def test_steps_give_what_generate_joins(ours: Decoder) -> None:
    requests = [asked(ids, DRAWN, seed=number, limit=5 + number) for number, ids in enumerate(TEXTS)]
    steps = [said for step in ours.steps(requests) for said in step]
    for index, said in enumerate(ours.generate(requests)):
        mine = [one for one in steps if one.index == index]
        assert [one.code for one in mine] == said.codes.tolist()
        assert torch.equal(torch.stack([one.latent for one in mine]), said.latents)
        assert [one.last for one in mine] == [False] * (len(mine) - 1) + [True]
        assert sum(one.logprob for one in mine) == pytest.approx(said.logprob)


def test_logprob_is_that_of_the_models_own_scores(ours: Decoder) -> None:
    request = asked(sampling=DRAWN)
    said = ours.generate([request])[0]
    scores = ours.forced(request, said.codes)[:-1].log_softmax(1)
    assert said.logprob == pytest.approx(float(scores.gather(1, said.codes[:, None]).sum()), abs=1e-3)


@pytest.mark.parametrize(
    ("precision", "near"), [("fp32", 1e-4), ("int8", 0.5), pytest.param("bf16", 0.1, marks=needs_bf16)]
)
def test_forced_codes_give_the_scores_of_coqui(gpt: Any, precision: Any, near: float) -> None:
    codes = torch.tensor([3, 141, 59, 26, 535, 897])
    scores = Decoder.of(gpt, precision).forced(asked(), codes)
    with torch.no_grad():
        wanted = gpt.mel_head(second_pass(gpt, TEXTS[0], torch.cat((codes, torch.tensor([7])))))
    assert scores.shape == (len(codes) + 1, 1026)
    torch.testing.assert_close(scores, wanted, atol=near, rtol=0)
    assert scores.std() > 1  # the tolerances are small beside it


def test_retold_latents_are_those_of_generation(ours: Decoder) -> None:
    request = asked(sampling=DRAWN)
    said = ours.generate([request])[0]
    torch.testing.assert_close(ours.retold(request, said.codes)[1][:-1], said.latents, atol=1e-4, rtol=0)


def test_closing_the_iterator_frees_the_caches_at_once(ours: Decoder, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []
    original = ours.stack.cache

    def remembered(*arguments: Any) -> Any:
        kept = original(*arguments)
        made.extend([weakref.ref(kept), weakref.ref(kept.layers[0])])
        return kept

    monkeypatch.setattr(ours.stack, "cache", remembered)
    gc.disable()
    try:
        for sampling in (DRAWN, Sampling(beams=3)):
            steps: Any = ours.steps([asked(sampling=sampling, limit=30)])
            next(steps)
            next(steps)
            assert made[-2]() is not None
            steps.close()
            assert [one() for one in made] == [None] * len(made)
    finally:
        gc.enable()


def test_the_gpt_is_left_as_it_was_or_consumed(gpt: Any) -> None:
    before = {name: weight.clone() for name, weight in gpt.state_dict().items()}
    wanted = Decoder.of(gpt).generate([asked()])[0]
    assert all(torch.equal(weight, before[name]) for name, weight in gpt.state_dict().items())
    given = talking_gpt(3, end=3.0)
    weights = [weakref.ref(weight) for weight in given.gpt.h.parameters()]
    eaten = Decoder.of(given, consume=True)
    assert [weight() for weight in weights] == [None] * len(weights)
    assert eaten.generate([asked()])[0].codes.tolist() == wanted.codes.tolist()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_gpt_in_half_precision_is_taken_as_well(gpt: Any, precision: Any) -> None:
    half = copy.deepcopy(gpt).half()
    one, other = (Decoder.of(each, precision).generate([asked()])[0] for each in (half, half.float()))
    assert one.codes.tolist() == other.codes.tolist()
    assert one.latents.dtype == torch.float32


def test_a_step_of_fixed_shape_is_the_same_step(ours: Decoder) -> None:
    requests = [asked(ids) for ids in TEXTS[:3]]
    rows = torch.randn(3, 64)
    with torch.inference_mode():
        one, other = (ours._begun(requests)[0] for _ in range(2))
        for _ in range(3):
            wanted = ours.stack.step(rows, one)
            column, mask = torch.tensor([other.end]), other.hiding(other.end + 1)
            found = ours.stack.fixed_step(rows, other.layers, column, mask)
            other.end += 1
            torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"ids": [5] * 403}, TextError, "403 tokens is too long"),
        ({"ids": [5, 100]}, VocabularyError, "does not know"),
        ({"ids": [-1]}, VocabularyError, "does not know"),
        ({"prompt": torch.zeros(1, 32, 65)}, ModelFileError, "width 65"),
        ({"limit": 0}, ConfigError, "at most 0 codes"),
    ],
)
def test_what_cannot_be_said_is_refused_before_the_first_step(
    ours: Decoder, change: dict[str, Any], error: type[AmharicTtsError], words: str
) -> None:
    with pytest.raises(error, match=words):
        ours.steps([asked(), asked()._replace(**change)])


@pytest.mark.parametrize("ids", [[], [5], [5] * 402], ids=len)
def test_the_shortest_and_the_longest_text_are_said(ours: Decoder, ids: list[int]) -> None:
    said = ours.generate([asked(ids, limit=3)])[0]
    assert 1 <= len(said.codes) <= 3


def test_a_limit_beyond_the_model_is_the_models(gpt: Any) -> None:
    short = talking_gpt(end=-1e4, max_mel_tokens=20)
    said = Decoder.of(short).generate([asked(limit=10_000)])[0]
    assert len(said.codes) == short.max_gen_mel_tokens == Decoder.of(short).most_codes
    assert not said.ended


def test_no_requests_give_nothing(ours: Decoder) -> None:
    assert list(ours.steps([])) == []
    nothing: list[Generated] = []
    assert ours.generate([]) == nothing


def test_a_gpt_with_adapters_is_refused() -> None:
    gpt = talking_gpt()
    gpt.gpt.h[1].attn.c_attn = torch.nn.Linear(64, 192)
    with pytest.raises(SpeedupError, match="Linear stands where a Conv1D should"):
        Decoder.of(gpt)


@pytest.mark.parametrize(("precision", "device"), [("fp16", "cpu"), ("int8", "cuda")])
def test_a_precision_that_does_not_suit_the_device_is_refused(precision: Any, device: str) -> None:
    with pytest.raises(SpeedupError) as caught:
        Decoder.of(talking_gpt(), precision, device)
    assert "Choose" in caught.value.hint


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_graphs_of_cuda_say_what_the_processor_says(gpt: Any, ours: Decoder, precision: Any) -> None:
    requests = [asked(ids, seed=number, limit=12 + 9 * number) for number, ids in enumerate(TEXTS)]
    made = Decoder.of(gpt, precision, "cuda")
    said = made.generate(requests)
    for index, wanted in enumerate(ours.generate(requests)):
        latents = made.retold(requests[index], said[index].codes)[1][:-1]
        torch.testing.assert_close(said[index].latents, latents, atol=0.1, rtol=0)
        if precision == "fp32":
            assert said[index].codes.tolist() == wanted.codes.tolist()
