"""Open the page in a browser; the same as ``python -m utils page``."""

import sys

from utils.__main__ import open_page, run

if __name__ == "__main__":
    sys.exit(run(open_page))
