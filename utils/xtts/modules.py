"""Classes of coqui-tts that the switches of training look for; everything else takes them from here."""

from TTS.tts.layers.tortoise.arch_utils import AttentionBlock, QKVAttentionLegacy
from TTS.tts.layers.tortoise.autoregressive import ConditioningEncoder, LearnedPositionEmbeddings
from TTS.tts.layers.xtts.gpt import GPT
from TTS.tts.layers.xtts.perceiver_encoder import Attend, Attention, PerceiverResampler

__all__ = [
    "GPT",
    "Attend",
    "Attention",
    "AttentionBlock",
    "ConditioningEncoder",
    "LearnedPositionEmbeddings",
    "PerceiverResampler",
    "QKVAttentionLegacy",
]
