"""Calibrate the heads that were trained with the encoder, choose the cuts, and write `heads.npz` into the package.

    python -m harness.training.calibrate --checkpoint FOLDER [--data FOLDER]

Run it after `export`. Calibration (Platt) and cuts come from the personas of the dev split and from the development
sets of other authors, which were never trained on. Needs torch, to read the heads.
"""

from __future__ import annotations

import argparse
import json
import zipfile
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from strands_gated_memory.embedded.decider import EmbeddedDecider
from strands_gated_memory.embedded.encoder import DATA, Encoder
from strands_gated_memory.embedded.heads import FORMAT

from .figures import cut_for
from .personas import read_personas
from .scored import ScoredTurn, Scorer

MODEL_ID = "embedded-3"
CORPUS = Path(__file__).parent / "corpus"
DEVELOPMENT = Path(__file__).parent / "development"
BLOCKS = {
    "gate": ("turn",),
    "namespace": ("turn.subject", "turn*subject", "turn~subject"),
    "record": ("turn.subject", "turn*subject", "turn~subject"),
}
GATE_RECALL = {"dev": 0.98, "elsewhere": 0.97}
"""Share of the needed turns that the gate must open, on personas and on other authors' messages."""
ROUTER_RECALL = 0.995
"""Share of the needed namespaces that must be searched."""
RECORD_RECALL = 0.97
"""Share of the grade-2 records that must be kept, on each set; the cut with the fewest others is taken."""
RELATIVE = np.round(np.arange(0.02, 0.5, 0.01), 2)
"""Cuts relative to the best record that are tried, each with the highest floor that keeps the recall."""

Floats = NDArray[np.float64]
Layers = Sequence[tuple[Any, Any]]


def write(
    path: Path, layers: Mapping[str, Layers], calibration: Mapping[str, tuple[float, float]], cuts: Mapping[str, float]
) -> None:
    """Write the heads' file: float16 arrays and `heads.json`, with fixed times so that equal heads are equal bytes."""
    entries: dict[str, bytes] = {}
    heads: dict[str, Any] = {}
    for name, pairs in layers.items():
        names = []
        for depth, pair in enumerate(pairs):
            keys = [f"{name}.{depth}.{part}" for part in ("weight", "bias")]
            for key, values in zip(keys, pair, strict=True):
                buffer = BytesIO()
                np.save(buffer, np.asarray(values).astype(np.float16), allow_pickle=False)
                entries[f"{key}.npy"] = buffer.getvalue()
            names.append(keys)
        slope, intercept = calibration.get(name, (1.0, 0.0))
        heads[name] = {"blocks": BLOCKS[name], "layers": names, "slope": slope, "intercept": intercept}
    about = {"format": FORMAT, "model_id": MODEL_ID, "thresholds": cuts, "heads": heads}
    entries["heads.json"] = json.dumps(about, indent=1).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for key in sorted(entries):
            file.writestr(zipfile.ZipInfo(key), entries[key], zipfile.ZIP_DEFLATED)


def trained_layers(checkpoint: Path) -> dict[str, Layers]:
    """Return the layers of the heads in a checkpoint of `finetune`, each as weight (inputs, outputs) and bias."""
    from .finetune import Decisions

    heads = Decisions(checkpoint).heads
    return {
        name: [(weight.detach().numpy(), bias.detach().numpy()) for weight, bias in heads[name].stored()]
        for name in BLOCKS
    }


def platt(chances: Floats, targets: Floats) -> tuple[float, float]:
    """Return slope and intercept of the sigmoid that fits uncalibrated probabilities to the targets, 0..1."""
    logits = _logit(chances)
    x = np.concatenate([logits, logits])[:, None]
    y = np.concatenate([np.ones(logits.size), np.zeros(logits.size)])
    model = LogisticRegression(C=1e6).fit(x, y, sample_weight=np.concatenate([targets, 1 - targets]))
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def _logit(chances: Floats) -> Floats:
    clipped: Floats = np.clip(chances, 1e-12, 1 - 1e-12)
    logits: Floats = np.log(clipped / (1 - clipped))
    return logits


def _calibrated(chances: Floats, calibration: tuple[float, float]) -> Floats:
    fitted: Floats = 1 / (1 + np.exp(-(calibration[0] * _logit(chances) + calibration[1])))
    return fitted


def _judged(turns: Sequence[ScoredTurn], calibration: tuple[float, float]) -> list[tuple[Floats, NDArray[np.int64]]]:
    judged = [turn.judged() for turn in turns if turn.needed]
    return [(_calibrated(p, calibration), grades) for p, grades in judged if p.size]


def record_cuts(sets: Sequence[list[tuple[Floats, NDArray[np.int64]]]]) -> tuple[float, float]:
    """Return the floor and the relative cut that keep `RECORD_RECALL` on every set with the fewest of grade 0.

    Args:
        sets: Per set, probabilities and grades per turn.
    """
    tried: list[tuple[float, float, float]] = []
    for relative in RELATIVE:
        floors, zeros = [], []
        for turns in sets:
            # A record of grade 2 below the relative cut is lost whatever the floor.
            needed = np.concatenate([np.where(p >= relative * p.max(), p, 0.0)[g == 2] for p, g in turns])
            floors.append(cut_for(needed, RECORD_RECALL))
        floor = min(floors)
        if floor <= 0:
            continue
        for turns in sets:
            kept = [float((p[g == 0] >= max(floor, relative * p.max())).sum()) / g.size for p, g in turns]
            zeros.append(float(np.mean(kept)))
        tried.append((float(np.mean(zeros)), floor, float(relative)))
    _, floor, relative = min(tried)
    return floor, relative


def calibrate(layers: Mapping[str, Layers], data: Path, out: Path) -> dict[str, float]:
    """Write the heads, calibrated and with cuts, for the encoder in `data`; return the cuts."""
    encoder = Encoder(data, cache_entries=1_000_000)
    write(out, layers, {}, {"gate": 0.0, "router": 0.0, "validator": 0.0})
    scorer = Scorer(EmbeddedDecider(encoder, out))
    dev = list(scorer.personas([persona for persona in read_personas(CORPUS) if persona.split == "dev"]))
    messages = list(scorer.gate_items(DEVELOPMENT / "gate_ood_dev.json"))
    stores = list(scorer.relevance_items(DEVELOPMENT / "relevance_ood_dev.json"))
    gated = [[turn for turn in turns if turn.gate is not None] for turns in (dev, messages)]
    opened = [np.array([turn.gate for turn in turns], float) for turns in gated]
    needed = [np.array([turn.needed for turn in turns], float) for turns in gated]
    routed = [one for turn in dev for one in turn.routed]
    chances = np.concatenate([one.probabilities for one in routed])
    wanted = np.concatenate([one.wanted for one in routed])
    raw = [row for turns in (dev, stores) for row in _judged(turns, (1.0, 0.0))]
    calibration = {
        "gate": platt(np.concatenate(opened), np.concatenate(needed)),
        "namespace": platt(chances, wanted.astype(float)),
        "record": platt(np.concatenate([p for p, _ in raw]), np.concatenate([g for _, g in raw]) / 2),
    }
    floor, relative = record_cuts([_judged(turns, calibration["record"]) for turns in (dev, stores)])
    cuts = {
        "gate": min(
            cut_for(_calibrated(p, calibration["gate"])[y == 1], recall)
            for p, y, recall in zip(opened, needed, GATE_RECALL.values(), strict=True)
        ),
        "router": cut_for(_calibrated(chances, calibration["namespace"])[wanted], ROUTER_RECALL),
        "validator": floor,
        "relative": relative,
    }
    write(out, layers, calibration, cuts)
    return cuts


def main() -> None:
    """Write the heads and print the cuts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of encoder.onnx, where heads.npz goes")
    options = parser.parse_args()
    print(json.dumps(calibrate(trained_layers(options.checkpoint), options.data, options.data / "heads.npz"), indent=1))


if __name__ == "__main__":
    main()
