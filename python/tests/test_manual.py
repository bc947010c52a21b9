"""Examples in Python in the manual print the output that the page shows below them."""

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "manual"

# A block of Python code and, if it follows directly, the block of text with its output.
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)

AS_SHOWN = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples() -> dict[str, list[tuple[str, str]]]:
    """Return the examples of each page with examples, in order."""
    pages = {page.name: EXAMPLE.findall(page.read_text()) for page in sorted(PAGES.glob("*.md"))}
    return {page: found for page, found in pages.items() if found}


@pytest.mark.parametrize("page", examples())
def test_examples_print_the_output_that_the_page_shows(
    page: str, tmp_path: Path, agents: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STARFISH_AGENTS", agents)
    names: dict[str, object] = {}
    for source, shown in examples()[page]:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(source, page, "exec"), names)
        printed = output.getvalue()
        assert doctest.OutputChecker().check_output(shown, printed, AS_SHOWN), printed


def test_the_manual_has_examples() -> None:
    assert "writing-programs.md" in examples()
