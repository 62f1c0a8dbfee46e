"""Write docs/model-card.md: what the embedded model is, and every figure of it, with intervals.

    python -m harness.training.card            # writes docs/model-card.md
    python -m harness.training.card --check    # fails when the page is not what this model and corpus give

Figures are computed here from the shipped files and the corpus, but for the alternatives and the learning curve: they
were noted from single training runs into `comparison.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from sklearn.metrics import roc_auc_score

from strands_gated_memory.core.questions import Noul
from strands_gated_memory.core.wordings import RECORD_CRITERIA
from strands_gated_memory.embedded.decider import EmbeddedDecider
from strands_gated_memory.embedded.encoder import DATA, Encoder
from strands_gated_memory.embedded.language import surely_english

from .agreement import SECOND, agreement, read_second
from .check_corpus import check, check_lines
from .figures import calibration_error
from .personas import read_messages, read_personas, read_stores
from .scored import ScoredTurn, Scorer

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
PAGE = ROOT / "docs" / "model-card.md"
TEMPLATE = Path(__file__).parent / "model_card.md"
COMPARISON = Path(__file__).parent / "comparison.json"
DEVELOPMENT = ROOT / "harness" / "data"
OTHER_AUTHORS = Path(__file__).parent / "development"
RESAMPLES = 1000
WORST = 20
NONE = "There are none."

Turns: TypeAlias = Sequence[ScoredTurn]
Values: TypeAlias = "Sequence[float] | np.ndarray"


@dataclass(frozen=True)
class Figure:
    """One row of the card.

    Attributes:
        name: What it says.
        goal: What was aimed for; "" for none.
        parts: The values whose mean it is, of some turns; None for a figure that is no mean.
        whole: The figure of some turns, None where there is nothing to measure; used where `parts` is None.
    """

    name: str
    goal: str
    parts: Callable[[Turns], Values] | None = None
    whole: Callable[[Turns], float | None] | None = None

    def of(self, turns: Turns) -> float | None:
        """Return the figure."""
        if self.parts is not None:
            values = self.parts(turns)
            return float(np.mean(values)) if len(values) else None
        assert self.whole is not None
        return self.whole(turns)

    def interval(self, turns: Turns, seed: int = 0) -> tuple[float, float] | None:
        """Return the percentile bootstrap's 95 % interval; whole groups (personas) are resampled."""
        groups: dict[str, list[ScoredTurn]] = {}
        for turn in turns:
            groups.setdefault(turn.group, []).append(turn)
        members = list(groups.values())
        picks = np.random.default_rng(seed).integers(len(members), size=(RESAMPLES, len(members)))
        if self.parts is not None:
            parts = [np.asarray(self.parts(member), float) for member in members]
            sums, counts = np.array([part.sum() for part in parts]), np.array([part.size for part in parts])
            seen = counts[picks].sum(1) > 0
            found = (sums[picks].sum(1)[seen] / counts[picks].sum(1)[seen]).tolist()
        else:
            samples = ([turn for at in pick for turn in members[at]] for pick in picks)
            found = [value for sample in samples if (value := self.of(sample)) is not None]
        return (float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))) if found else None


def _gated(turns: Turns) -> tuple[np.ndarray, np.ndarray]:
    answered = [turn for turn in turns if turn.gate is not None]
    return np.array([turn.gate for turn in answered]), np.array([turn.needed for turn in answered], bool)


def gate_auc(turns: Turns) -> float | None:
    """Return the AUC of P(memory is needed)."""
    p, y = _gated(turns)
    return float(roc_auc_score(y, p)) if 0 < y.sum() < y.size else None


def gate_right(turns: Turns) -> Values:
    """Tell, per turn, whether it is on the right side of P = 0.5."""
    p, y = _gated(turns)
    return (p >= 0.5) == y


def gate_opened(cut: float) -> Callable[[Turns], Values]:
    """Tell, per needed turn, whether the gate opens at this cut."""

    def of(turns: Turns) -> Values:
        p, y = _gated(turns)
        return p[y] >= cut

    return of


def gate_closed(cut: float) -> Callable[[Turns], Values]:
    """Tell, per other turn, whether the gate closes at this cut."""

    def of(turns: Turns) -> Values:
        p, y = _gated(turns)
        return p[~y] < cut

    return of


def gate_pairs(cut: float) -> Callable[[Turns], Values]:
    """Tell, per pair (same words, other history, other label), whether both are decided rightly at this cut."""

    def of(turns: Turns) -> Values:
        pairs: dict[str, list[ScoredTurn]] = {}
        for turn in turns:
            if turn.pair and turn.gate is not None:
                pairs.setdefault(turn.pair, []).append(turn)
        mixed = [pair for pair in pairs.values() if len({turn.needed for turn in pair}) == 2]
        return [float(all(((turn.gate or 0.0) >= cut) == turn.needed for turn in pair)) for pair in mixed]

    return of


def gate_calibration(turns: Turns) -> float | None:
    """Return the expected calibration error of the gate."""
    p, y = _gated(turns)
    return calibration_error(p, y.astype(float))


def route_found(turns: Turns) -> Values:
    """Tell, per needed namespace, whether it is searched."""
    return [float(hit) for turn in turns for one in turn.routed for hit in one.searched[one.wanted]]


def route_avoided(turns: Turns) -> Values:
    """Tell, per other namespace, whether it is not searched."""
    return [float(not hit) for turn in turns for one in turn.routed for hit in one.searched[~one.wanted]]


def _judged(turns: Turns, grade: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return probabilities and flags of the turns that have records of this grade or above, and others."""
    found = []
    for turn in turns:
        p, grades = turn.judged()
        flags = grades >= grade
        if turn.needed and 0 < flags.sum() < flags.size:
            found.append((p, flags))
    return found


def relevance_auc(grade: int) -> Callable[[Turns], Values]:
    """Return, per turn, the AUC of its records of this grade or above."""
    return lambda turns: [float(roc_auc_score(flags, p)) for p, flags in _judged(turns, grade)]


def precision_at_k(turns: Turns) -> Values:
    """Return P@k per turn, k the number of records of grade 1 or 2; ties count against it."""
    found = []
    for p, flags in _judged(turns, 1):
        order = np.lexsort((flags, -p))  # among equals, the irrelevant first
        found.append(float(flags[order[: flags.sum()]].mean()))
    return found


def _selected(turns: Turns) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (turn.kept, turn.grades) for turn in turns if turn.needed and turn.kept is not None and turn.grades is not None
    ]


def must_haves_kept(turns: Turns) -> Values:
    """Tell, per grade-2 record of needed turns, whether selection keeps it."""
    return [float(hit) for kept, grades in _selected(turns) for hit in kept[grades == 2]]


def zeros_kept(turns: Turns) -> Values:
    """Return, per needed turn, how many records of grade 0 selection keeps, scaled to 15 candidates."""
    return [15 * float(kept[grades == 0].sum()) / grades.size for kept, grades in _selected(turns)]


def kept_of_nothing(turns: Turns) -> Values:
    """Return, per turn on which no record bears, how many the selection keeps, were the gate open."""
    return [
        float(turn.kept.sum())
        for turn in turns
        if turn.kept is not None and turn.grades is not None and not turn.grades.any()
    ]


def relevance_calibration(turns: Turns) -> float | None:
    """Return the expected calibration error of relevance on needed turns; grade 1 counts half."""
    judged = [turn.judged() for turn in turns if turn.needed]
    if not sum(p.size for p, _ in judged):
        return None
    return calibration_error(np.concatenate([p for p, _ in judged]), np.concatenate([g for _, g in judged]) / 2)


def figures(cut: float) -> list[Figure]:
    """Return the rows, for a gate that opens at this probability."""
    return [
        Figure("gate: accuracy at P = 0.5", "≥ 0.93", gate_right),
        Figure("gate: AUC", "", whole=gate_auc),
        Figure("gate: recall of needed turns", "≥ 0.98", gate_opened(cut)),
        Figure("gate: share of unneeded turns closed", "≥ 0.75", gate_closed(cut)),
        Figure("gate: same words, other history, both right", "≥ 0.85", gate_pairs(cut)),
        Figure("gate: calibration error", "≤ 0.05", whole=gate_calibration),
        Figure("route: recall per needed namespace", "≥ 0.97", route_found),
        Figure("route: searches avoided", "≥ 0.40", route_avoided),
        Figure("relevance: mean AUC, grade 2", "≥ 0.95", relevance_auc(2)),
        Figure("relevance: mean AUC, grade ≥ 1", "≥ 0.92", relevance_auc(1)),
        Figure("relevance: mean P@k", "≥ 0.80", precision_at_k),
        Figure("relevance: calibration error", "≤ 0.05", whole=relevance_calibration),
        Figure("after selection: recall of grade 2", "≥ 0.98", must_haves_kept),
        Figure("after selection: grade 0 kept, of 15", "≤ 1.0", zeros_kept),
        Figure("after selection: kept when nothing bears", "≤ 1.0", kept_of_nothing),
    ]


def _cell(figure: Figure, turns: Turns) -> str:
    value = figure.of(turns)
    if value is None:
        return "–"
    bounds = figure.interval(turns)
    return f"{value:.3f} ({bounds[0]:.3f}–{bounds[1]:.3f})" if bounds else f"{value:.3f}"


def table(rows: Sequence[Figure], columns: dict[str, Turns]) -> str:
    """Return the figures as a Markdown table, one column per set of turns."""
    lines = [f"| figure | goal | {' | '.join(columns)} |", f"|---|---|{'---|' * len(columns)}"]
    lines += [f"| {row.name} | {row.goal} | {' | '.join(_cell(row, t) for t in columns.values())} |" for row in rows]
    return "\n".join(lines)


def worst(turns: Turns, gate_cut: float) -> str:
    """Return the twenty worst cases: gate mistakes and records, by how sure the model was of the wrong answer."""
    found: list[tuple[float, str]] = []
    for turn in turns:
        said = f"“{_short(turn.text, 90)}”" + (f" after “{_short(turn.previous[-1], 50)}”" if turn.previous else "")
        if turn.gate is not None and (turn.gate >= gate_cut) != turn.needed:
            wrong = 1 - turn.gate if turn.needed else turn.gate
            label = "needed, closed" if turn.needed else "not needed, open"
            found.append((wrong, f"| gate | {label} | {turn.gate:.3f} | {turn.where} | {said} | |"))
        if turn.needed and turn.relevance is not None and turn.grades is not None:
            for p, grade, text in zip(turn.relevance, turn.grades, turn.texts, strict=True):
                if grade == 2 or (grade == 0 and p > 0.5):
                    wrong = 1 - p if grade == 2 else p
                    row = f"| record | grade {grade} | {p:.3f} | {turn.where} | {said} | {_short(text, 90)} |"
                    found.append((float(wrong), row))
    gates = sorted((row for row in found if row[1].startswith("| gate")), reverse=True)[: WORST // 2]
    records: dict[str, tuple[float, str]] = {}
    for row in sorted((row for row in found if row[1].startswith("| record")), reverse=True):
        records.setdefault(row[1].rsplit("|", 2)[1], row)  # a record's worst case stands for it
    chosen = [*gates, *list(records.values())[: WORST - len(gates)]]
    head = "| decision | label | P | where | message | record |\n|---|---|---|---|---|---|\n"
    return head + "\n".join(row for _, row in chosen)


def _short(text: str, most: int) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= most else text[: most - 1] + "…"


def trade_off(turns: Turns) -> str:
    """Return what other relative cuts, without a floor, would keep of the records of these turns, as a table."""
    lines = ["| `select.relative` | grade 2 kept | grade 0 kept, of 15 |", "|---|---|---|"]
    judged = [turn.judged() for turn in turns if turn.needed and turn.judged()[0].size]
    for relative in (0.05, 0.1, 0.2, 0.3, 0.5):
        kept = [(p >= relative * p.max(), grades) for p, grades in judged]
        needed = np.concatenate([flags[grades == 2] for flags, grades in kept]).mean()
        zeros = np.mean([15 * flags[grades == 0].sum() / grades.size for flags, grades in kept])
        lines.append(f"| {relative:g} | {needed:.3f} | {zeros:.1f} |")
    return "\n".join(lines)


def _languages() -> dict[str, str]:
    """Return how many messages there are in English and in other languages, and how they are read."""
    read = {True: 0, False: 0}
    total = {True: 0, False: 0}
    for message in read_messages(CORPUS, "train"):
        english = message.language == "en"
        total[english] += 1
        read[english] += surely_english(message.text)
    return {
        "foreign": f"{total[False]:,}",
        "foreign_read": str(read[False]),
        "english": f"{total[True]:,}",
        "english_left": str(total[True] - read[True]),
    }


def _subjects(decider: EmbeddedDecider) -> str:
    """Return P(it belongs) of the same facts with another subject, as a table."""
    facts = {"is vegan": "What should I cook tonight?", "cannot swim": "Shall we rent a rowing boat on Sunday?"}
    facts["has a nut allergy"] = "Which cake should I bring?"
    lines = ["| message | The user … | Tomasz … | no subject |", "|---|---|---|---|"]
    for fact, message in facts.items():
        texts = [f"The user {fact}.", f"Tomasz {fact}.", f"{fact[0].upper()}{fact[1:]}."]
        answers = decider.decide(
            {"message": message, "previous": []},
            {str(at): RECORD_CRITERIA.question(text) for at, text in enumerate(texts)},
        )
        cells = [f"{answer.noul:.3f}" if isinstance(answer, Noul) else "–" for answer in answers.values()]
        lines.append(f"| {message} | {' | '.join(cells)} |")
    return "\n".join(lines)


def page() -> str:
    """Return the model card."""
    decider = EmbeddedDecider(Encoder(cache_entries=1_000_000))
    scorer = Scorer(decider)
    personas = read_personas(CORPUS, test=True)
    sets = {split: list(scorer.personas([one for one in personas if one.split == split])) for split in ("test", "dev")}
    stores = list(scorer.personas(read_stores(CORPUS, "test")))
    messages = list(scorer.messages(read_messages(CORPUS, "test")))
    gate_sets = {
        "gate_dev": list(scorer.gate_items(DEVELOPMENT / "gate_dev.json")),
        "gate_ood_dev": list(scorer.gate_items(OTHER_AUTHORS / "gate_ood_dev.json")),
    }
    relevance_sets = {
        "relevance_dev": list(scorer.relevance_items(DEVELOPMENT / "relevance_dev.json")),
        "relevance_ood_dev": list(scorer.relevance_items(OTHER_AUTHORS / "relevance_ood_dev.json")),
    }
    pairs = scorer.same_facts(DEVELOPMENT / "persona.json")
    cut = scorer.thresholds.gate
    rows = figures(cut)
    groups = {"gate": [r for r in rows if r.name.startswith("gate") and "history" not in r.name]}
    groups["relevance"] = [r for r in rows if r.name.startswith(("relevance", "after"))]
    gated = [r for r in rows if r.name.startswith("gate")]
    counted, _ = check(CORPUS)
    lines, _ = check_lines(CORPUS)
    tried = json.loads(COMPARISON.read_text(encoding="utf-8"))
    agreed = agreement(personas, read_second(SECOND))
    values = {
        "model_id": decider.model_id,
        "files": "\n".join(
            f"| `{path.name}` | {path.stat().st_size:,} | `{hashlib.sha256(path.read_bytes()).hexdigest()}` |"
            for path in sorted(DATA.iterdir())
        ),
        "splits": "\n".join(f"| {' | '.join(row)} |" for row in counted),
        "agreement": f"Over {agreed['turns']} turns and {agreed['pairs']:,} pairs Cohen's kappa is "
        f"{agreed['needs_memory']:.2f} for needs_memory, {agreed['grade'][0]:.2f} for grade 0, "
        f"{agreed['grade'][1]:.2f} for grade 1 and {agreed['grade'][2]:.2f} for grade 2.",
        "thresholds": ", ".join(f"{name} {value:g}" for name, value in vars(scorer.thresholds).items() if value),
        "figures": table(rows, {"test (held out)": sets["test"], "dev (chosen on)": sets["dev"]}),
        "lines": "\n".join(f"| {' | '.join(row)} |" for row in lines),
        "stores": table(groups["relevance"], {f"stores (held out), {_answered(stores)}": stores}) if stores else NONE,
        "messages": table(gated, {f"messages (held out), {_answered(messages)}": messages}) if messages else NONE,
        "gate_dev": table(groups["gate"], {f"{name}, {_answered(t)}": t for name, t in gate_sets.items()}),
        "relevance_dev": table(
            groups["relevance"], {f"{name}, {_answered(t)}": t for name, t in relevance_sets.items()}
        ),
        "runs": "; then ".join(tried["runs"]),
        **_languages(),
        "trade_off": trade_off(relevance_sets["relevance_ood_dev"]),
        "subjects": _subjects(decider),
        "shapes": f"{float(np.mean([b - a for a, b in pairs])):+.3f} (mean absolute "
        f"{float(np.mean([abs(b - a) for a, b in pairs])):.3f}, {len(pairs)} pairs of fact and message)",
        "comparison": _table_of(tried["alternatives"]),
        "curve": _table_of(tried["learning curve"]),
        "worst": worst(sets["test"], cut),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def _answered(turns: Turns) -> str:
    answered = sum(turn.gate is not None for turn in turns)
    return f"{answered} of {len(turns)} answered"


def _table_of(rows: Sequence[dict[str, object]]) -> str:
    names = list(rows[0])
    return "\n".join(
        [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
        + [f"| {' | '.join(str(row[name]) for name in names)} |" for row in rows]
    )


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = page()
    if options.check:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print("docs/model-card.md is current" if current else "stale: run python -m harness.training.card")
        return int(not current)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
