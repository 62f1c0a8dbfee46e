"""The README's measured parts say what the model card says, the weak rows included."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from harness import readme

ROOT = Path(__file__).parents[2]


def figures_in(text, columns):
    """Return goal and held-out value of each row of a table of figures, by name."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: tuple(row[at].partition(" (")[0] for at in columns) for row in rows if len(row) > max(columns)}


def test_every_figure_that_misses_its_goal_is_shown():
    card = (ROOT / "docs" / "model-card.md").read_text(encoding="utf-8").partition("## Figures")[2]
    held_out = figures_in(card.partition("The development sets")[0], (1, 2))
    section = re.search(r"<!-- model:start -->(.*?)<!-- model:end -->", (ROOT / "README.md").read_text("utf-8"), re.S)
    shown = figures_in(section[1], (2, 1))

    missed = [name for name, (goal, value) in held_out.items() if goal[:1] in ("≥", "≤") and misses(goal, value)]
    assert "gate: same words, other history, both right" in missed
    assert {name: shown.get(name) for name in missed} == {name: held_out[name] for name in missed}


def misses(goal, value):
    limit = float(goal[1:])
    return float(value) < limit if goal[0] == "≥" else float(value) > limit


def test_new_figures_leave_the_demo_and_the_times(monkeypatch, tmp_path):
    before = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "README.md").write_text(before, encoding="utf-8")
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    monkeypatch.setattr(readme, "model_section", lambda: "| gate: AUC | 0.5 |  |")
    monkeypatch.setattr(sys, "argv", ["readme", "--figures"])

    assert readme.main() == 0

    after = (tmp_path / "README.md").read_text(encoding="utf-8")
    section = f"| gate: AUC | 0.5 |  |\n\n{readme.times_in(before)}"
    assert after == readme.replace(before, "model", section)


def test_times_that_are_not_there_cannot_be_kept():
    with pytest.raises(ValueError, match=r"run python -m harness\.readme"):
        readme.times_in("# A README")
