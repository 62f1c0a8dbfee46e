"""docs/memory-manager.md and the examples of the native path say what is so."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from strands_gated_memory import GatedMemoryManager
from strands_gated_memory.retrieval import stores

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "memory-manager.md").read_text(encoding="utf-8")


def section(title):
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_seam_that_is_named_has_its_test_and_the_other_way_round():
    source = (Path(__file__).parent / "test_memory_manager_seams.py").read_text(encoding="utf-8")

    assert set(re.findall(r"`(test_\w+)`", section("The seams that it relies on"))) == set(
        re.findall(r"^def (test_\w+)", source, re.MULTILINE)
    )


def test_every_argument_is_described():
    described = set(re.findall(r"`(\w+)`", section("Arguments")))

    assert set(inspect.signature(GatedMemoryManager).parameters) <= described


def test_the_names_in_entries_are_those_that_are_looked_for():
    rows = dict(re.findall(r"^\| (score|id|time of writing) \| (.*) \|$", section("Stores"), re.MULTILINE))

    assert {name: tuple(re.findall(r"`(\w+)`", cell)) for name, cell in rows.items()} == {
        "score": stores._SCORES,
        "id": stores._IDS,
        "time of writing": stores._TIMES,
    }


@pytest.mark.parametrize("path", re.findall(r"\]\(\.\./(examples/\w+\.py)\)", TEXT))
def test_an_example_that_is_named_runs_and_recalls(path, capsys):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    module.main()

    shown = capsys.readouterr().out
    assert "> Hello!" in shown
    assert "(no memory was needed)" in shown
    assert "vegetarian food" in shown.lower()
    assert re.search(r"^gate decisions +2  \(open 1, closed 1, failed 0\)$", shown, re.MULTILINE)
