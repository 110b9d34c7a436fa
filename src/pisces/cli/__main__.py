"""`python -m pisces.cli`."""

import sys

from pisces.cli import main

if __name__ == "__main__":
    sys.exit(main())
