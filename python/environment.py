#!/usr/bin/env python3
"""Make a virtual environment with all tools that build and test the Python package: environment.py FOLDER.

The program changes only this folder. It needs Python 3.11 and one of venv (on Debian: python3-venv),
virtualenv and uv; requirements.txt pins the versions of everything else.
"""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"


def main() -> None:
    """Create the environment in the folder that the only argument names, replacing an existing one."""
    folder = Path(sys.argv[1])
    if sys.version_info < OLDEST:
        sys.exit(f"Python {sys.version.split()[0]} is too old: {OLDEST[0]}.{OLDEST[1]} or newer is needed")
    subprocess.run([*creation(), str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--requirement", str(REQUIREMENTS)], check=True)


def creation() -> list[str]:
    """Return the command that makes an environment with pip, using the tool installed on this computer."""
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return [sys.executable, "-m", "venv", "--clear"]
    if importlib.util.find_spec("virtualenv"):
        return [sys.executable, "-m", "virtualenv", "--quiet", "--clear"]
    if uv := shutil.which("uv"):
        return [uv, "venv", "--quiet", "--clear", "--seed", "--python", sys.executable]
    sys.exit("Python cannot make virtual environments here: sudo apt-get install python3-venv")


if __name__ == "__main__":
    main()
