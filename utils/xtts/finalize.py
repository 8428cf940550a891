"""Export a checkpoint to ready/: a model folder that also works in plain coqui-tts."""

from pathlib import Path

from utils.core.errors import RunError
from utils.core.storage import DamagedError
from utils.xtts.checkpoints import Checkpoint, read_state


def promote(checkpoint: Checkpoint, ready: Path, reference: Path | None = None, *, half: bool = False) -> Path:
    """Export a checkpoint as the project's voice; the previous one is replaced when the new one is complete.

    Args:
        checkpoint: The checkpoint.
        ready: Target folder.
        reference: Reference clip of the voice; None keeps that of the base model.
        half: Store the GPT in half precision.
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
            hint="Restore it: the other parts of the voice come from there.",
        )
    tokenizer = Tokenizer.load(checkpoint.folder)
    if about.vocabulary_hash and tokenizer.vocabulary.hash != about.vocabulary_hash:
        raise DamagedError(
            f"{checkpoint.folder} has a vocabulary that does not match its weights.", hint="Choose another checkpoint."
        )
    losses = {"train_loss": about.train_loss, "eval_loss": about.eval_loss}
    known = {"run": checkpoint.run.name, "step": about.step, "epoch": about.epoch, **losses}
    return write_ready(ready, base, read_state(checkpoint.folder), tokenizer, reference, known, half=half)
