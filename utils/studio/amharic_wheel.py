"""Builds `amharic-text`, a wheel with the Amharic front end alone, for programs that load our voices without us.

from amharic_text import normalize, phonemize, to_latin
model.synthesize(to_latin(phonemize(normalize("ሰላም ለዓለም።"))), language="am", ...)
"""

import base64
import hashlib
import zipfile
from pathlib import Path

from utils.core import VERSION
from utils.core.paths import IS_CHECKOUT, ROOT

NAME = "amharic_text"
SOURCE = ROOT / "utils" / "amharic"
LICENSE = (ROOT if IS_CHECKOUT else ROOT / "utils") / "LICENSE"
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the same source makes the same wheel
METADATA = """\
Metadata-Version: 2.4
Name: amharic-text
Version: {version}
Summary: Amharic text to phonemes: numbers, abbreviations, gemination, epenthesis. Standard library only.
License-Expression: Apache-2.0
Requires-Python: >=3.11
Description-Content-Type: text/markdown

```python
from amharic_text import explain, normalize, phonemize, to_latin

to_latin(phonemize(normalize("በ2017 ዓ.ም. ተጀመረ።")))  # what models trained by Amharic XTTS read in latin mode
```

In a shell: `python -m amharic_text "በ2017 ዓ.ም. ተጀመረ።"`, or with a text on standard input.
"""
CONVERTER = '''"""Print a text as voices of Amharic XTTS read it: numbers as words, in phonetic Latin letters."""

import sys

from amharic_text import normalize, phonemize, to_latin

sys.stdin.reconfigure(encoding="utf-8")
sys.stdout.reconfigure(encoding="utf-8")
for line in [" ".join(sys.argv[1:])] if sys.argv[1:] else sys.stdin:
    print(to_latin(phonemize(normalize(line.strip()))))
'''
WHEEL = "Wheel-Version: 1.0\nGenerator: amharic_wheel\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel_name() -> str:
    return f"{NAME}-{VERSION}-py3-none-any.whl"


def build(folder: Path) -> Path:
    """Write the wheel to a folder and return its path."""
    about = f"{NAME}-{VERSION}.dist-info"
    files = _package()
    files[f"{NAME}/__main__.py"] = CONVERTER.encode()
    files[f"{about}/METADATA"] = METADATA.format(version=VERSION).encode()
    files[f"{about}/WHEEL"] = WHEEL.encode()
    files[f"{about}/licenses/LICENSE"] = LICENSE.read_bytes()
    record = "".join(f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / wheel_name()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), content)
    return wheel


def _package() -> dict[str, bytes]:
    """Return the files of the front end by their names in the wheel, with their imports renamed."""
    return {
        f"{NAME}/{path.relative_to(SOURCE).as_posix()}": path.read_bytes().replace(b"utils.amharic", NAME.encode())
        for path in sorted(SOURCE.rglob("*"))
        if path.suffix in {".py", ".tsv", ".txt"}
    }


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
