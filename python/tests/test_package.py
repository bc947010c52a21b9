"""The installed package: types, documentation, imports and version."""

import ast
import inspect
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.metadata import version
from pathlib import Path

import pytest

import starfish

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def public() -> list[tuple[str, object]]:
    """Return all public names and objects, including members of classes."""
    found = []
    for name in starfish.__all__:
        thing = getattr(starfish, name)
        found.append((name, thing))
        if inspect.isclass(thing):
            members = [member for member in vars(thing).items() if not member[0].startswith("_")]
            functions = [
                member for member in members if callable(member[1]) or isinstance(member[1], property)
            ]
            found += [(f"{name}.{member}", value) for member, value in functions]
    return found


@pytest.mark.parametrize(("name", "thing"), public())
def test_everything_public_is_documented(name: str, thing: object) -> None:
    documentation = inspect.getdoc(thing)
    assert documentation, name
    assert documentation.split("\n")[0].endswith((".", ":")), name


@pytest.mark.parametrize(
    "function", [starfish.simulate, starfish.simulate_merges, starfish.run, starfish.split, starfish.merge]
)
def test_every_argument_is_documented(function: object) -> None:
    assert callable(function)
    documentation = inspect.getdoc(function) or ""
    for name in inspect.signature(function).parameters:
        assert f"\n    {name}: " in documentation, name


def imported(module: Path) -> set[str]:
    """Return the modules of the package that a module imports, at any place."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "starfish":
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("starfish."):
            found.add((node.module or "").removeprefix("starfish."))
    return found


def test_imports_have_no_cycle() -> None:
    modules = (HERE.parent / "starfish").glob("*.py")
    TopologicalSorter({module.stem: imported(module) for module in modules}).prepare()


def test_sources_tests_and_examples_pass_mypy() -> None:
    """Check the sources, tests and examples against the types that the package declares."""
    checked = [HERE.parent / "starfish", HERE, HERE.parent / "environment.py", ROOT / "examples" / "python"]
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(Path(sys.prefix).parent / "mypy")]
    command += [str(path) for path in checked]
    output = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent)
    assert output.returncode == 0, output.stdout + output.stderr


def test_the_installed_package_is_marked_as_typed() -> None:
    folder = Path(starfish.__file__).parent
    assert folder.parent != HERE.parent, "the tests must import the installed package"
    assert (folder / "py.typed").exists()
    assert (folder / "_native.pyi").exists()


def test_the_version_is_that_of_the_project() -> None:
    manifest = (ROOT / "Cargo.toml").read_text()
    assert f'version = "{starfish.__version__}"' in manifest
    assert version("starfish-io") == starfish.__version__
