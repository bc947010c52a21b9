#!/usr/bin/env python3
"""Make a virtual environment with all that builds and tests the Python package: environment.py FOLDER.

Nothing outside the folder is touched. Needs Python 3.11 and one of venv (on Debian: python3-venv), virtualenv and
uv; the versions of everything else are those of requirements.txt.
"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"


def main() -> None:
    """Make the environment in the folder named by the only argument, from nothing."""
    folder = Path(sys.argv[1])
    if sys.version_info < OLDEST:
        sys.exit(f"Python {sys.version.split()[0]} is too old: {OLDEST[0]}.{OLDEST[1]} or newer is needed")
    subprocess.run([*creation(), str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--requirement", str(REQUIREMENTS)], check=True)


def creation() -> list[str]:
    """Return the command that makes an environment with pip in it, with what there is on this computer."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return [sys.executable, "-m", "venv", "--clear"]
    if importlib.util.find_spec("virtualenv"):
        return [sys.executable, "-m", "virtualenv", "--quiet", "--clear"]
    if uv := shutil.which("uv"):
        return [uv, "venv", "--quiet", "--clear", "--seed", "--python", sys.executable]
    sys.exit("Python cannot make virtual environments here: sudo apt-get install python3-venv")


if __name__ == "__main__":
    main()
