"""Putting a model on the hub, for others or for oneself: only when asked, with a token from the environment alone."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from utils.core.errors import ConfigError, DownloadError
from utils.workspace.publishing import ALL

VARIABLE = "HF_TOKEN"
REPOSITORY = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")


class UploadError(DownloadError):
    """The hub does not take what it is sent."""


def check_push(repository: str) -> str:
    """Return the token to push with, before any work is done, or say what is missing."""
    if not REPOSITORY.fullmatch(repository):
        raise ConfigError(f"{repository!r} is no name on the hub.", hint="Write it as owner/name.")
    token = os.environ.get(VARIABLE, "").strip()
    if not token:
        raise ConfigError(
            f"Pushing needs a token, and {VARIABLE} is not set.",
            hint="Make one with the right to write in the settings of your account on the hub, and set it there.",
        )
    return token


def push(folder: Path, repository: str, *, public: bool = False, endpoint: str | None = None) -> str:
    """Upload the files of an exported model and return where they are.

    Args:
        folder: The model.
        repository: Where to, as owner/name; it is made when it is not there.
        public: Whether everybody may see a repository that is made now.
        endpoint: Address of the hub; None: the one of HF_ENDPOINT, or the public one.
    """
    from huggingface_hub import HfApi

    token = check_push(repository)
    api = HfApi(endpoint=endpoint, token=token)
    with _reaching(repository, token):
        api.create_repo(repository, private=not public, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository, folder_path=folder, allow_patterns=list(ALL), commit_message="A model that speaks"
        )
    return str(done.commit_url)


@contextmanager
def _reaching(repository: str, token: str) -> Iterator[None]:
    """Say in one sentence why the hub took nothing, and never with which token."""
    from httpx2 import HTTPError, InvalidURL

    try:
        yield
    except (HTTPError, InvalidURL, OSError, ValueError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UploadError(
            f"{repository} could not be pushed: {first.replace(token, '…')}.",
            hint=f"Check the connection, and that the token in {VARIABLE} may write there; the folder is whole.",
        ) from None
