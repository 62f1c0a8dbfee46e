"""How far a second, blind reader agrees with the authors of the corpus.

    python -m harness.training.agreement [--second FILE]

The file holds, for a ten per cent sample of the turns, drawn from every persona, what another reader found who
saw the records and the turns and no label. Prints Cohen's kappa (J. Cohen, 1960): of needs_memory, and per
grade, grade or not, over all records of the sampled turns.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from .personas import Persona, read_personas

SECOND = Path(__file__).parent / "second_reader.json"
GRADES = (0, 1, 2)


class SecondLabel(BaseModel):
    """What the second reader found for one turn."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    needs_memory: bool
    labels: dict[str, int]
    """1 or 2 per record id; the others are 0."""


def read_second(path: Path) -> dict[str, dict[str, SecondLabel]]:
    """Read the second labels: persona id -> turn id -> label."""
    return TypeAdapter(dict[str, dict[str, SecondLabel]]).validate_json(path.read_text(encoding="utf-8"))


def agreement(personas: list[Persona], second: dict[str, dict[str, SecondLabel]]) -> dict[str, Any]:
    """Return the number of turns and pairs compared and the kappas, -1..1.

    Raises:
        KeyError: The second reader's file names a persona or turn that the corpus does not have.
    """
    from sklearn.metrics import cohen_kappa_score

    by_key = {persona.key.rpartition("/")[2]: persona for persona in personas}
    needed: list[tuple[bool, bool]] = []
    pairs: list[tuple[int, int]] = []
    of_needed: list[tuple[int, int]] = []
    for key, turns in second.items():
        persona = by_key[key]
        asks = {turn.key: turn for turn in persona.turns}
        for name, label in turns.items():
            ask = asks[name]
            needed.append((ask.needed, label.needs_memory))
            both = [(ask.grades.get(record, 0), label.labels.get(record, 0)) for record in persona.records]
            pairs += both
            of_needed += both if ask.needed or label.needs_memory else []

    def kappa(of: list[tuple[Any, Any]]) -> float:
        return round(float(cohen_kappa_score(*zip(*of, strict=True))), 4)

    return {
        "turns": len(needed),
        "pairs": len(pairs),
        "needs_memory": kappa(needed),
        "grade": {grade: kappa([(a == grade, b == grade) for a, b in pairs]) for grade in GRADES},
        "grade_at_least_1": kappa([(a > 0, b > 0) for a, b in pairs]),
        "three_grades_linear": round(float(cohen_kappa_score(*zip(*pairs, strict=True), weights="linear")), 4),
        "grade_in_needed_turns": {grade: kappa([(a == grade, b == grade) for a, b in of_needed]) for grade in GRADES},
    }


def main() -> None:
    """Print the agreement."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parent / "corpus")
    parser.add_argument("--second", type=Path, default=SECOND)
    options = parser.parse_args()
    print(json.dumps(agreement(read_personas(options.corpus, test=True), read_second(options.second)), indent=1))


if __name__ == "__main__":
    main()
