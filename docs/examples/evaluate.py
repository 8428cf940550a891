"""Measure how well a model speaks some sentences: utils.evaluation alone, no project."""

from pathlib import Path

from utils.config import SpeechConfig
from utils.core.paths import TINY_MODEL
from utils.evaluation.evaluate import candidates, evaluate
from utils.evaluation.report import text
from utils.evaluation.sentences import EvaluationSentence
from utils.speech.synthesizer import open_voice

models = candidates([TINY_MODEL], open_voice)  # or folders of models of your own
sentences = [EvaluationSentence(sentence, "am") for sentence in ("ሰላም ለሁላችሁም።", "ልጆቹ በትምህርት ቤት ይማራሉ።")]
report = evaluate(models, sentences, Path("report"), SpeechConfig(seed=7), report=print)
print(text(report))
