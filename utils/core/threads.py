"""What torch and the math libraries read when they are loaded, for the page, its runs, the server and every command."""

import os

# Workers of OpenMP spin between two products. Beside any other busy process, spinning costs most of the speed.
PASSIVE = {"KMP_BLOCKTIME": "0", "GOMP_SPINCOUNT": "0", "OMP_WAIT_POLICY": "PASSIVE"}
ON_APPLE = {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}  # the CPU does what torch lacks for Apple's GPU, instead of an error


def prepare_libraries() -> None:
    """Let idle threads sleep; call it before torch is imported. Children inherit it, and what a user has set stays."""
    for name, value in {**PASSIVE, **ON_APPLE}.items():
        os.environ.setdefault(name, value)
