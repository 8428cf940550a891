"""Upload a published model to the Hugging Face Hub."""

import os
import re
from pathlib import Path

from utils.core.errors import first_line
from utils.studio.facts import UploadError, UsageError
from utils.studio.publishing import ALL_FILES

TOKEN_VARIABLE = "HF_TOKEN"  # noqa: S105
REPOSITORY = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")


def require_token(repository: str) -> str:
    """Return the token to upload with; check it and the repository name before any work is done."""
    if not REPOSITORY.fullmatch(repository):
        raise UsageError("not_a_repository", repository)
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise UsageError("no_token", TOKEN_VARIABLE)
    return token


def push(folder: Path, repository: str, *, public: bool = False, endpoint: str | None = None) -> str:
    """Upload a published model to owner/name, which is created if it does not exist; return the address of the commit.

    Without an endpoint, the hub is that of HF_ENDPOINT, or the public one.
    """
    from httpx2 import HTTPError, InvalidURL
    from huggingface_hub import HfApi

    token = require_token(repository)
    api = HfApi(endpoint=endpoint, token=token)
    try:
        api.create_repo(repository, private=not public, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repository, folder_path=folder, allow_patterns=list(ALL_FILES), commit_message="Upload model"
        )
    except (HTTPError, InvalidURL, OSError, ValueError) as error:
        reason = first_line(error).replace(token, "…")
        raise UploadError("upload_failed", repository, reason) from None  # the cause may hold the token
    return str(commit.commit_url)
