#!/usr/bin/env python3
"""The image builder: `python build_image.py --help`. The front of runner/cli/image, for any Python."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the builder with this Python when it has what is needed, else with the one in .venv."""
    sys.path.insert(0, str(HERE))
    try:
        from runner.cli.image.main import main as build
    except ImportError as e:
        own = HERE / ".venv" / "bin" / "python"
        if own.exists() and Path(sys.prefix).resolve() != own.parent.parent.resolve():
            os.execv(own, [str(own), str(HERE / "build_image.py"), *sys.argv[1:]])
        sys.exit(f"build_image: this Python lacks {e.name}\n  hint: `make setup`, or pip install -e '{HERE}'")
    build()


if __name__ == "__main__":
    main()
