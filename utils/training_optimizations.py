"""The public face of the optimizations: apply them to a model, and report which are active."""

from utils.training.optimizations import TrainingOptimizer, UnslothStyleOptimizations, coqui_gpt

__all__ = ["TrainingOptimizer", "UnslothStyleOptimizations", "coqui_gpt"]
