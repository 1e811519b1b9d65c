"""Makes the folder itself runnable: `python3 /any/where/entry ATTEMPT_DIR`."""

import importlib
import importlib.util
import sys
from pathlib import Path

# Started by its path, the folder is no package yet. It becomes one by its file and not through sys.path:
# a json.py in the folder above would stand in for the standard library's.
_FOLDER = Path(__file__).resolve().parent
_SPEC = importlib.util.spec_from_file_location("entry", _FOLDER / "__init__.py")
assert _SPEC is not None
assert _SPEC.loader is not None
sys.modules["entry"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(sys.modules["entry"])

sys.exit(importlib.import_module("entry.supervise").main())
