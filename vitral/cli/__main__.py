"""`python -m vitral.cli`, the same as `vitral`."""

import sys

from vitral.cli.main import main

sys.exit(main())
