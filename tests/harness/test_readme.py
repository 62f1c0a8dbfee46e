"""The README's measured parts say what the model card says, the weak rows included."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from harness import readme
from harness.training.personas import read_personas
from strands_gated_memory.core.questions import probability_of
from strands_gated_memory.core.wordings import GATE_CRITERIA
from strands_gated_memory.embedded.decider import EmbeddedDecider

ROOT = Path(__file__).parents[2]


def figures_in(text, columns):
    """Return goal and held-out value of each row of a table of figures, by name."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: tuple(row[at].partition(" (")[0] for at in columns) for row in rows if len(row) > max(columns)}


def test_every_figure_that_misses_its_goal_is_shown():
    card = (ROOT / "docs" / "model-card.md").read_text(encoding="utf-8").partition("## Figures")[2]
    held_out = figures_in(card.partition("On the held-out messages")[0], (1, 2))
    section = re.search(r"<!-- model:start -->(.*?)<!-- model:end -->", (ROOT / "README.md").read_text("utf-8"), re.S)
    shown = figures_in(section[1], (2, 1))

    missed = [name for name, (goal, value) in held_out.items() if goal[:1] in ("≥", "≤") and misses(goal, value)]
    assert "gate: same words, other history, both right" in missed
    assert {name: shown.get(name) for name in missed} == {name: held_out[name] for name in missed}


def misses(goal, value):
    limit = float(goal[1:])
    return float(value) < limit if goal[0] == "≥" else float(value) > limit


@pytest.fixture(scope="module")
def gate():
    """Return P(a lookup is worth making) by the embedded model, None where it abstains; and its cut."""
    decider = EmbeddedDecider()
    question = {"gate": GATE_CRITERIA.question()}

    def ask(message, previous=()):
        return probability_of(decider.decide({"message": message, "previous": list(previous)}, question)["gate"])

    return ask, decider.thresholds.gate


def test_the_limit_of_history_is_what_the_model_does(gate):
    """The figures of the README's limit, which stands outside the part that is written."""
    limit = re.search(r"- \*\*What was said before.*?\n- ", (ROOT / "README.md").read_text("utf-8"), re.S)
    text = " ".join(limit[0].split())
    ask, cut = gate
    message, *before = re.search(r'"([^"]+)" has P .* after "([^"]+)" "([^"]+)"', text).groups()
    alone, after = re.search(r"has P ([\d.]+) alone and ([\d.]+) after", text).groups()

    assert ask(message) == pytest.approx(float(alone), abs=0.01)
    assert ask(message, before) == pytest.approx(float(after), abs=0.05)

    personas = [one for one in read_personas(readme.CORPUS, test=True) if one.split == "test"]
    turns = [turn for one in personas for turn in one.turns]
    counts = []
    for history in (False, True):
        said = [(ask(turn.text, turn.previous if history else ()), turn.needed) for turn in turns]
        said = [(p, needed) for p, needed in said if p is not None]
        counts.append(sum(p >= cut for p, needed in said if needed))
        counts.append(sum(p < cut for p, needed in said if not needed))
    totals = [sum(needed for _, needed in said), sum(not needed for _, needed in said)]
    shown = re.search(
        r"found (\d+) of (\d+) needed turns instead of (\d+), and closed on (\d+) of (\d+) .* of (\d+)", text
    )
    found, needed, found_with, closed, others, closed_with = map(int, shown.groups())

    assert [needed, others] == totals
    assert [found, closed, found_with, closed_with] == pytest.approx(counts, abs=2)


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


def test_the_table_of_settings_shows_the_cuts_of_the_heads_that_ship():
    """Read from the shipped file itself: `python -m harness.readme --figures` writes them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shipped = EmbeddedDecider().thresholds
    shown = {
        name: float(re.search(rf"\| {re.escape(row)} \| {before}([\d.]+) \(else", text)[1])
        for name, (row, before) in readme.CUT_ROWS.items()
    }

    assert shown == {name: float(f"{getattr(shipped, name):g}") for name in readme.CUT_ROWS}
    assert readme.with_cuts(text) == text
    assert readme.with_cuts(text.replace(f"{shipped.gate:g} (else", "0.9 (else")) == text
