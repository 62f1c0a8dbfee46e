"""Fit the heads on labelled personas and write them into the package.

    python -m harness.training.fit_heads [--corpus FOLDER] [--out FILE] [--recipe NAME] [--test]

Uses the shipped encoder as it is, scikit-learn and nothing heavier. Networks are fitted on the train split;
calibration (Platt) and thresholds, recall first, come from the dev split; the test split is only measured,
and only with --test. Seeded: the same corpus and versions give the same file.
"""

from __future__ import annotations

import argparse
import json
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from strands_gated_memory.embedded.encoder import DATA, Encoder
from strands_gated_memory.embedded.heads import FORMAT, read_about, read_heads

from .evaluate import measure
from .examples import Rows, gate_rows, namespace_rows, record_rows
from .figures import threshold_for
from .personas import Persona, read_personas

MODEL_ID = "embedded-2"
RECALL = {"gate": 0.98, "router": 0.975, "validator": 0.99}
"""Share of what is needed that each stage must keep on the dev split; the cut relative to the best comes on top."""
RELATIVE = 0.03
"""`select.relative` for these heads: on the dev split 0.02 keeps 99 % of the grade-2 records, 0.1 keeps 94 %."""
PAIR_WEIGHT = 3.0
"""What a turn weighs for the gate whose words another turn has too, with another history and another label."""
NOT_NEEDED_WEIGHT = 0.3
"""What a record of a turn that needs no memory weighs: the validator seldom sees such a turn."""


@dataclass(frozen=True)
class Recipe:
    """How one head is fitted.

    Attributes:
        inputs: The blocks that its networks read.
        hidden: Units per hidden layer; () for logistic regressions only.
        penalty: L2 weight of the networks (sklearn's alpha).
        epochs: Passes over the rows.
        seeds: How many networks, whose logits are averaged.
    """

    inputs: tuple[str, ...]
    hidden: tuple[int, ...]
    penalty: float
    epochs: int
    seeds: int


WORDS = ("overlap", "subject_form", "turn")
PARTS = ("message", "context", "assistant", "turn", "message.assistant", "message.user", "message*assistant")
PAIR = ("message", "subject", "message*subject")
COSINES = ("message.subject", "context.subject", "assistant.subject", "user.subject")
WHOLE = ("whole", "subject", "whole*subject", "whole~subject", "whole.subject")
RECIPES = {
    "frozen": {
        "gate": Recipe(PARTS, (32,), 0.5, 40, 5),
        "namespace": Recipe((*PAIR, *COSINES, *WORDS), (32,), 1.0, 15, 3),
        "record": Recipe((*PAIR, "context*subject", *COSINES, *WORDS), (64, 32), 1.0, 6, 3),
    },
    "whole": {
        "gate": Recipe(("whole", "message", "turn"), (32,), 0.5, 40, 5),
        "namespace": Recipe((*WHOLE, *WORDS), (32,), 1.0, 15, 3),
        "record": Recipe((*WHOLE, *WORDS), (64, 32), 1.0, 6, 3),
    },
}
"""By name: "frozen" for an encoder that embeds sentences, which sees the parts of a turn one by one; "whole"
for one fine-tuned on a turn as one text."""
ROWS = {"gate": gate_rows, "namespace": namespace_rows, "record": record_rows}

Weights = list[tuple[NDArray[np.float32], NDArray[np.float32]]]


def fit(recipe: Recipe, rows: Rows) -> list[Weights]:
    """Fit the networks of one head; a grade-1 record counts half as yes and half as no."""
    x = rows.join(recipe.inputs)
    half = rows.grades == 1
    weights = np.where(rows.needed, 1.0, NOT_NEEDED_WEIGHT if "subject" in recipe.inputs else 1.0)
    weights = np.where(rows.paired, PAIR_WEIGHT, weights)
    x = np.concatenate([x, x[half]])
    y = np.concatenate([rows.grades == 2, np.ones(int(half.sum()), bool)])
    weights = np.concatenate([weights * np.where(half, 0.5, 1.0), weights[half] * 0.5])
    networks = []
    for seed in range(recipe.seeds):
        network = MLPClassifier(recipe.hidden, alpha=recipe.penalty, max_iter=recipe.epochs, random_state=seed, tol=0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it stops after its epochs, as intended
            network.fit(x, y, sample_weight=weights)
        networks.append(list(zip(network.coefs_, network.intercepts_, strict=True)))
    return networks


def calibrate(logits: NDArray[np.float64], rows: Rows) -> tuple[float, float]:
    """Return slope and intercept of Platt's sigmoid, fitted with half targets for grade 1."""
    seen = rows.needed if len(rows.blocks) != rows.targets.size else np.ones(rows.targets.size, bool)
    logits, targets = logits[seen], rows.targets[seen]
    x = np.concatenate([logits, logits])[:, None]
    y = np.concatenate([np.ones(logits.size), np.zeros(logits.size)])
    model = LogisticRegression(C=1e6).fit(x, y, sample_weight=np.concatenate([targets, 1 - targets]))
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def write(path: Path, networks: dict[str, list[Weights]], recipes: Mapping[str, Recipe], spec: dict[str, Any]) -> None:
    """Write the heads' file: float16 arrays and `heads.json`, with fixed times so that equal heads are equal bytes."""
    entries: dict[str, bytes] = {}
    heads: dict[str, Any] = {}
    for name, members in networks.items():
        listed = []
        for at, layers in enumerate(members):
            names = [[f"{name}.{at}.{depth}.{part}" for part in ("weight", "bias")] for depth in range(len(layers))]
            for pair, arrays in zip(names, layers, strict=True):
                for key, values in zip(pair, arrays, strict=True):
                    buffer = BytesIO()
                    np.save(buffer, values.astype(np.float16), allow_pickle=False)
                    entries[f"{key}.npy"] = buffer.getvalue()
            listed.append({"inputs": list(recipes[name].inputs), "bilinear": [], "layers": names})
        slope, intercept = spec["calibration"].get(name, (1.0, 0.0))
        heads[name] = {"networks": listed, "slope": slope, "intercept": intercept}
    about = {"format": FORMAT, "model_id": MODEL_ID, "thresholds": spec["thresholds"], "heads": heads}
    entries["heads.json"] = json.dumps(about, indent=1).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for key in sorted(entries):
            file.writestr(zipfile.ZipInfo(key), entries[key], zipfile.ZIP_DEFLATED)


def fit_all(personas: Sequence[Persona], encoder: Encoder, recipes: Mapping[str, Recipe], out: Path) -> None:
    """Fit, calibrate, choose thresholds and write."""
    train = [persona for persona in personas if persona.split == "train"]
    dev = [persona for persona in personas if persona.split == "dev"] or train
    networks = {name: fit(recipe, ROWS[name](train, encoder)) for name, recipe in recipes.items()}
    thresholds = {"gate": 0.0, "router": 0.0, "validator": 0.0, "relative": RELATIVE}
    spec: dict[str, Any] = {"calibration": {}, "thresholds": thresholds}
    with TemporaryDirectory() as folder:  # stored precision first: calibration sees what will run
        write(Path(folder) / "heads.npz", networks, recipes, spec)
        raw = read_heads(Path(folder) / "heads.npz")
    for name, stage in (("gate", "gate"), ("namespace", "router"), ("record", "validator")):
        rows = ROWS[name](dev, encoder)
        logits = np.concatenate([raw[name].logits(block) for block in rows.blocks])
        slope, intercept = spec["calibration"][name] = calibrate(logits, rows)
        chances = 1 / (1 + np.exp(-(slope * logits + intercept)))
        thresholds[stage] = threshold_for(chances[rows.grades == 2], RECALL[stage])
    write(out, networks, recipes, spec)


def main() -> None:
    """Fit, write and print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parent / "corpus")
    parser.add_argument("--out", type=Path, default=DATA / "heads.npz")
    parser.add_argument("--recipe", choices=sorted(RECIPES), default="frozen", help="what the heads see of a turn")
    parser.add_argument("--test", action="store_true", help="measure on the held-out test split too")
    parser.add_argument("--report-only", action="store_true", help="measure the file that is there")
    options = parser.parse_args()
    personas = read_personas(options.corpus, test=options.test)
    if not any(persona.split == "train" for persona in personas):
        raise SystemExit(f"no personas to fit on in {options.corpus}")
    encoder = Encoder(cache_entries=1_000_000)
    with threadpool_limits(1):  # sums in one order: the same file from the same corpus
        if not options.report_only:
            fit_all(personas, encoder, RECIPES[options.recipe], options.out)
        heads, about = read_heads(options.out), read_about(options.out)
        report: dict[str, Any] = {"model_id": about.model_id, "thresholds": vars(about.thresholds)}
        for split in ("train", "dev", "test"):
            chosen = [persona for persona in personas if persona.split == split]
            if chosen:
                rows = {name: make(chosen, encoder) for name, make in ROWS.items()}
                report[split] = {"personas": len(chosen), **measure(heads, about.thresholds, rows)}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
