"""Makes the folder itself runnable: `python3 /any/where/entry ATTEMPT_DIR`."""

import sys
from pathlib import Path

if not __package__:  # PEP 366: started by path, so relative imports need the package's name
    sys.path[0:0] = [str(Path(__file__).resolve().parent.parent)]
    __package__ = Path(__file__).resolve().parent.name

from .supervise import main

sys.exit(main())
