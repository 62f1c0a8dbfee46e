"""Deciders and files for the harness's tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.data.datasets import load
from harness.recording.recorder import RecordingDecider
from strands_gated_memory.core.questions import Noul, Question, Score


class Scripted:
    """Answers each question by a function of message and question; keeps what it was asked."""

    model_id = "scripted-1"

    def __init__(self, answer: Callable[[str, Question], float]):
        self.answer = answer
        self.requests: list[tuple[str, dict[str, Question]]] = []

    def decide(self, state, questions):
        self.requests.append((state["message"], dict(questions)))
        return {name: self._answer(state["message"], question) for name, question in questions.items()}

    def _answer(self, message, question):
        p = self.answer(message, question)
        if question.type == "score":
            return Score(0.0, {"0": 1 - p, "1": 0.0, "2": 0.0, "3": p})
        return Noul(p)


class Broken:
    """Fails always."""

    model_id = "broken-1"

    def decide(self, state, questions):
        raise RuntimeError("endpoint does not exist")


def recorded(decider, folder: Path, name: str = "scripted") -> RecordingDecider:
    return RecordingDecider(decider, folder / f"{name}.jsonl", False, name=name)


def write(path: Path, value: object):
    path.write_text(json.dumps(value), encoding="utf-8")
    return load(path)


def gate_file(path: Path, labels: Mapping[str, bool]):
    return write(path, [{"utterance": text, "needs_memory": needed} for text, needed in labels.items()])
