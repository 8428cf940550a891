"""What the headers of MP3 and WAV files say about their length, which the FFmpeg libraries do not tell."""

from pathlib import Path

NO_SIZE = 0x7FF00000  # bytes; a WAV written to a pipe states a size near 2 or 4 GB


def has_frame_count(path: Path) -> bool:
    """Return whether the first frame of an MP3 says how many there are."""
    with path.open("rb") as file:
        head = file.read(10)
        tag = sum(byte << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=False))  # such as a picture
        file.seek(10 + tag if head.startswith(b"ID3") else 0)
        first = file.read(200)
    return b"Xing" in first or b"Info" in first


def wav_size_ratio(path: Path) -> float:
    """Return the size that a WAV states, divided by its real size; 1 if it is not larger, or not known."""
    with path.open("rb") as file:
        kind, size = file.read(4), file.read(4)
    stated = 8 + int.from_bytes(size, "big" if kind == b"RIFX" else "little")
    return max(1.0, stated / path.stat().st_size) if stated < NO_SIZE else 1.0
