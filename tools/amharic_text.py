"""Build `amharic-text`, a wheel with the Amharic front end alone: `python -m tools.amharic_text FOLDER`."""

import argparse
from pathlib import Path

from utils.studio.amharic_wheel import build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    print(build(parser.parse_args().folder))


if __name__ == "__main__":
    main()
