"""`python -m wavetank.replay` is the command `wavetank replay`."""

import sys

from wavetank import _wavetank

if __name__ == "__main__":
    sys.exit(_wavetank.main(["wavetank", "replay", *sys.argv[1:]]))
