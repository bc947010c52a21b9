"""Examples: their output has the words of the recorded output, and numbers within a tolerance."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "python"

# Relative tolerance: the mechanisms and calibrated costs of the simulator may change slightly.
TOLERANCE = 0.1

NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_prints_its_recorded_output(example: Path) -> None:
    command = [sys.executable, "-P", str(example)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    expected = example.with_suffix(".out").read_text()
    assert words(run.stdout) == words(expected), run.stdout
    assert numbers(run.stdout) == pytest.approx(numbers(expected), rel=TOLERANCE), run.stdout


def words(text: str) -> list[str]:
    return NUMBER.sub("#", text).split()


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]
