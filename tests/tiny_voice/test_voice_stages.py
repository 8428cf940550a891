"""Stages are done once, and again when something that they depended on has changed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools.tiny_voice import stages
from tools.tiny_voice.recipe import RECIPES, Corpus, Recipe
from tools.tiny_voice.stages import BuildContext, Stage
from utils.core.errors import ConfigError

TOY = RECIPES["toy"]
OTHER = replace(TOY, corpus=Corpus(seed=9))


class Bench:
    """Three stages that note when they work."""

    def __init__(self, root: Path) -> None:
        self.root, self.done, self.told = root, [""], [""]
        self.file = root.parent / "sentences"
        self.file.write_text("a", encoding="utf-8")
        self.fails = False

    def run(self, recipe: Recipe = TOY, *wanted: str) -> list[str]:
        context = BuildContext(self.root, recipe, "cpu", self.told.append)
        first = Stage("first", (), ("corpus",), self.work("first"), (self.file,))
        second = Stage("second", ("first",), ("dvae",), self.work("second"))
        self.done = []
        stages.run(context, [first, second, Stage("third", ("second",), (), self.work("third"))], wanted)
        return self.done

    def work(self, name: str) -> Any:
        def do(context: BuildContext) -> Mapping[str, Any]:
            if name == "second" and self.fails:
                (context.folder(name) / "half").write_text("done", encoding="utf-8")
                raise KeyboardInterrupt
            self.done.append(name)
            return {"name": name}

        return do


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "voice")


def test_a_finished_stage_is_done_again_only_after_a_change(bench: Bench) -> None:
    assert bench.run() == ["first", "second", "third"]
    assert bench.run() == []
    assert stages.figures(bench.root, "second")["name"] == "second"
    assert bench.run(replace(TOY, dvae=replace(TOY.dvae, steps=7))) == ["second", "third"]
    assert bench.run(OTHER) == ["first", "second", "third"]


@pytest.mark.parametrize(("recipe", "is_kept"), [(TOY, True), (OTHER, False)])
def test_half_of_an_interrupted_stage_is_kept_unless_its_inputs_change(
    bench: Bench, recipe: Recipe, is_kept: bool
) -> None:
    bench.fails = True
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    bench.fails = False
    assert bench.run(recipe)[-2:] == ["second", "third"]
    assert (bench.root / "second" / "half").is_file() is is_kept


def test_single_stages_can_be_selected(bench: Bench) -> None:
    assert bench.run(TOY, "first") == ["first"]
    with pytest.raises(ConfigError, match="needs second first"):
        bench.run(TOY, "third")
    with pytest.raises(ConfigError, match=r"fourth.*first, second, third"):
        bench.run(TOY, "fourth")
