"""How the threads of the math libraries wait, for the page, its runs, the server and every command."""

import os

# Workers of OpenMP spin between two products. Beside any other busy process, spinning costs most of the speed.
PASSIVE = {"KMP_BLOCKTIME": "0", "GOMP_SPINCOUNT": "0", "OMP_WAIT_POLICY": "PASSIVE"}


def wait_passively() -> None:
    """Let idle threads sleep; call it before torch is imported. Children inherit it, and what a user has set stays."""
    for name, value in PASSIVE.items():
        os.environ.setdefault(name, value)
