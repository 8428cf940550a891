"""From a checkpoint to ready/: a model folder that speaks, also in plain coqui-tts."""

from pathlib import Path

from utils.core.errors import RunError
from utils.core.folders import DamagedError
from utils.xtts.checkpoints import Checkpoint, read_state


def promote(checkpoint: Checkpoint, ready: Path, reference: Path | None = None, *, half: bool = False) -> Path:
    """Write the model of a checkpoint; the one that was in the folder stays until the new one is complete.

    Args:
        checkpoint: What to make of it.
        ready: Where.
        reference: A clip whose voice it speaks with; None keeps the one of the base.
        half: Store the GPT in half the size.
    """
    from utils.xtts.export import write_ready
    from utils.xtts.model import fingerprint
    from utils.xtts.tokenizer import Tokenizer

    about = checkpoint.info
    if about is None:
        raise DamagedError(checkpoint.error, hint="Choose another checkpoint.")
    base = Path(about.base)
    if not base.is_dir() or (about.base_fingerprint and fingerprint(base) != about.base_fingerprint):
        raise RunError(
            f"{base} is no longer the model that this checkpoint was trained from.",
            hint="Put it back: the voice's other parts come from there.",
        )
    tokenizer = Tokenizer.load(checkpoint.folder)
    if about.vocabulary_hash and tokenizer.vocabulary.hash != about.vocabulary_hash:
        raise DamagedError(f"{checkpoint.folder} has another vocabulary than its weights.", hint="Choose another one.")
    losses = {"train_loss": about.train_loss, "eval_loss": about.eval_loss}
    known = {"run": checkpoint.run.name, "step": about.step, "epoch": about.epoch, **losses}
    return write_ready(ready, base, read_state(checkpoint.folder), tokenizer, reference, known, half=half)
