"""`python -m xpress_struct.cli`, for where the script is not on the path."""

import sys

from xpress_struct.cli.main import main

sys.exit(main())
