"""The command line: `python -m wavetank` is the `wavetank` command."""

import sys

from wavetank import _wavetank


def main() -> int:
    """Run the command with the words of this process."""
    return _wavetank.main(["wavetank", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
