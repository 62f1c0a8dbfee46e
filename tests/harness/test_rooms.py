"""The harness's modules, read as syntax trees: who imports whom."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

import harness

ROOT = Path(harness.__file__).parent
ROOMS = ("data", "recording", "measuring", "tuning", "reporting", "training", "benchmarks")


def imports(path: Path) -> set[str]:
    """Return the harness's modules that a file imports, inside functions too."""
    package = ["harness", *path.relative_to(ROOT).parts[:-1]]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def module_graph() -> dict[str, set[str]]:
    paths = {".".join(["harness", *path.relative_to(ROOT).with_suffix("").parts]): path for path in ROOT.rglob("*.py")}
    return {name: imports(path) & set(paths) - {name} for name, path in paths.items()}


def acyclic(graph: dict[str, set[str]]) -> None:
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_no_module_imports_itself_in_a_circle():
    graph = module_graph()

    assert "harness.recording.recorder" in graph["harness.measuring.options"]
    acyclic(graph)


def test_no_room_imports_itself_in_a_circle():
    rooms: dict[str, set[str]] = {}
    for name, imported in module_graph().items():
        room = name.split(".")[1]
        if room in ROOMS:
            rooms.setdefault(room, set()).update({other.split(".")[1] for other in imported} & set(ROOMS) - {room})

    assert rooms["reporting"] >= {"measuring", "recording"}
    acyclic(rooms)


def test_a_circle_is_found():
    with pytest.raises(pytest.fail.Exception, match=r"a imports b imports a|b imports a imports b"):
        acyclic({"a": {"b"}, "b": {"a"}})


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_what_is_in_it(room):
    said = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8")))

    assert said is not None
    assert len(said.split()) >= 8


def test_every_module_is_in_a_room():
    assert {path.stem for path in ROOT.glob("*.py")} == {"__init__", "__main__", "cli", "errors", "files", "readme"}
