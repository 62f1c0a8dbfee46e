"""`python -m harness <command>`."""

import sys

from .cli import main

sys.exit(main())
