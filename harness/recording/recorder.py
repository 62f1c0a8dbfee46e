"""A decider whose answers are kept in a file and can be replayed from it, latencies included.

The file is JSONL. Its first line says who answered; each other line is one request:

    {"decider": "embedded", "model": "embedded-1+0c1d…", "thresholds": {…}, "deadline_s": null}
    {"model": …, "run": 0, "state": "<sha256>", "ms": 7.1, "answers": {"<sha256>": 0.93, …}}
    {"model": …, "run": 0, "state": "<sha256>", "ms": 3000.2, "error": "timeout", "answers": {"<sha256>": null, …}}

An answer is looked up by model id, number of the run, SHA-256 of the state and of the question. Texts are not kept.
An answer's value is a number (noul), {"choice": …, "p": {…}}, {"score": …, "p": {…}}, or {"none": reason}.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast, get_args

from strands_gated_memory.core.questions import (
    Answer,
    Choice,
    Decider,
    NoAnswer,
    NoAnswerReason,
    Noul,
    Question,
    Reply,
    Score,
    State,
    Thresholds,
    checked,
)
from strands_gated_memory.errors import BadAnswer, DeciderError, error_kind

from ..errors import HarnessError, RunFailed
from .deciders import model_key, open_decider

_HASH = 32
"""Hexadecimal digits of each SHA-256 that are kept."""


class RecordedError(DeciderError):
    """A request that failed when it was recorded."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"recorded failure: {kind}")
        self.kind = kind  # type: ignore[misc]  # each recorded failure has its own


@dataclass(frozen=True)
class Call:
    """One request."""

    questions: int
    ms: float
    """Wall clock; when replayed, that of the recorded request."""
    error: str | None = None
    """The kind of failure; None when answers came."""


Key = tuple[str, int, str, str]
"""Model id, run, state, question."""


class RecordingDecider:
    """Asks a decider and keeps its answers, or answers from the file alone.

    Safe to share between threads. Use as a context manager, or call `close()`: the file is then sorted, so that
    two recordings of the same answers differ in latencies only.

    Args:
        decider: Who is asked; may be None with `replay`.
        path: The JSONL file; made, with its folder, when it does not exist.
        replay: Answer from the file alone.
        name: What to call the decider in tables; default: the file's.
        fresh: Throw away what was recorded before.

    Attributes:
        name: What the decider is called.
        model_id: The model's id.
        run: Which repetition is being asked, from 0 on; set it before asking.
        calls: Every request so far.
        errors: Failed requests and unusable answers so far, by kind; abstentions are not errors.
        abstained: How many questions the model said it cannot read.
        asked: How many questions so far.

    Raises:
        HarnessError: The file to replay is missing or damaged.
    """

    def __init__(
        self, decider: Decider | None, path: Path, replay: bool, *, name: str | None = None, fresh: bool = False
    ) -> None:
        self._decider = decider
        self._path = path
        self._replay = replay
        self._lock = threading.Lock()
        self._lines: dict[tuple[str, int, str, tuple[str, ...]], dict[str, Any]] = {}
        self._answers: dict[Key, tuple[dict[str, Any], Any]] = {}
        self.run = 0
        self.calls: list[Call] = []
        self.errors: Counter[str] = Counter()
        self.abstained = 0
        self.asked = 0
        header: dict[str, Any] = {}
        if replay and not path.exists():
            raise HarnessError(f"--replay: there is no recording {path}; run the same command without --replay first")
        if path.exists() and not fresh:
            header = self._read()
        if decider is None:
            if not replay:
                raise HarnessError("a RecordingDecider without a decider can only replay")
        else:
            header = _header(decider, name or path.stem)
        self.name = name or str(header["decider"])
        self.model_id = str(header["model"])
        self.deadline_s: float | None = header.get("deadline_s")
        self.thresholds: Thresholds | None = Thresholds(**header["thresholds"]) if header.get("thresholds") else None
        self._header = header

    def __repr__(self) -> str:
        return f"RecordingDecider({self.name!r}, {str(self._path)!r}, replay={self._replay})"

    def __enter__(self) -> RecordingDecider:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def warm(self) -> None:
        """Load the decider now; nothing to do when replaying."""
        warm = getattr(self._decider, "warm", None)
        if callable(warm) and not self._replay:
            warm()

    @property
    def total_ms(self) -> float:
        """Milliseconds of all requests."""
        return sum(call.ms for call in self.calls)

    def error_text(self) -> str:
        """Return the errors in words, such as "20 (timeout 20) of 20 questions"."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.errors.items()))
        return f"{sum(self.errors.values())} ({kinds}) of {self.asked} questions"

    def decide(self, state: State, questions: Mapping[str, Question]) -> Reply:
        """Ask, or replay; see `Decider.decide`. Every question of a failed request counts as an error.

        Raises:
            RunFailed: A question to replay was never recorded.
            Exception: What the decider raised, after it was counted.
        """
        keys = {name: question_hash(question) for name, question in questions.items()}
        at = state_hash(state)
        line = self._replayed(at, keys) if self._replay else self._asked(state, at, questions, keys)
        error = line.get("error")
        with self._lock:
            self.asked += len(questions)
            self.calls.append(Call(len(questions), float(line["ms"]), error))
            if error:
                self.errors[error] += len(questions)
        if error:
            raise line.pop("raised", None) or RecordedError(error)
        answers = {name: _answer(line["answers"][key]) for name, key in keys.items()}
        with self._lock:
            for answer in answers.values():
                if isinstance(answer, NoAnswer) and answer.reason == "abstained":
                    self.abstained += 1
                elif isinstance(answer, NoAnswer):
                    self.errors[answer.reason] += 1
        return Reply(answers, model=line.get("reported") or self.model_id, thresholds=line.get("thresholds"))

    def close(self) -> None:
        """Write the file anew, sorted, in one step; nothing to do when replaying."""
        if self._replay:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock:
            ordered = [self._lines[key] for key in sorted(self._lines)]
        text = "".join(
            json.dumps(line, separators=(",", ":"), sort_keys=False) + "\n" for line in [self._header, *ordered]
        )
        partial = self._path.with_name(self._path.name + ".partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(self._path)

    # Asking

    def _asked(
        self, state: State, at: str, questions: Mapping[str, Question], keys: Mapping[str, str]
    ) -> dict[str, Any]:
        assert self._decider is not None
        line: dict[str, Any] = {"model": self.model_id, "run": self.run, "state": at}
        started = time.perf_counter()
        raised: Exception | None = None
        raw: object = None
        try:
            raw = self._decider.decide(state, dict(questions))
            if not isinstance(raw, Mapping):
                raise BadAnswer(f"decide() returned {type(raw).__name__}, not a mapping of id to answer")
        except Exception as error:
            raised = error
        line["ms"] = round(1000 * (time.perf_counter() - started), 3)
        if raised is not None:
            line |= {"error": error_kind(raised), "answers": dict.fromkeys(keys.values())}
        else:
            raw = cast(Mapping[str, object], raw)
            line["answers"] = {
                keys[name]: _plain(checked(raw.get(name), question)) for name, question in questions.items()
            }
            if isinstance(raw, Reply):
                if raw.model and raw.model != self.model_id:
                    line["reported"] = raw.model
                if raw.thresholds:
                    line["thresholds"] = dict(raw.thresholds)
        self._keep(line)
        return line if raised is None else {**line, "raised": raised}

    def _keep(self, line: dict[str, Any]) -> None:
        kept = {name: value for name, value in line.items() if name != "raised"}
        with self._lock:
            self._add(kept)

    def _replayed(self, at: str, keys: Mapping[str, str]) -> dict[str, Any]:
        # The very request first, for its latency; else its questions from whatever requests held them.
        exact = self._lines.get((self.model_id, self.run, at, tuple(sorted(set(keys.values())))))
        found = [
            (exact, exact["answers"][key]) if exact else self._answers.get((self.model_id, self.run, at, key))
            for key in keys.values()
        ]
        missing = sum(one is None for one in found)
        if missing:
            raise RunFailed(
                f"{self._path} holds no answer to {missing} of {len(keys)} questions of this request (run {self.run}, "
                f"model {self.model_id}): data or wordings have changed since; record again without --replay"
            )
        lines = [one[0] for one in found if one is not None]
        error = next((line["error"] for line in lines if line.get("error")), None)
        return {
            "ms": max((float(line["ms"]) for line in lines), default=0.0),
            "error": error,
            "reported": next((line["reported"] for line in lines if line.get("reported")), None),
            "thresholds": next((line["thresholds"] for line in lines if line.get("thresholds")), None),
            "answers": {key: one[1] for key, one in zip(keys.values(), found, strict=True) if one is not None},
        }

    # The file

    def _read(self) -> dict[str, Any]:
        header: dict[str, Any] | None = None
        for number, text in enumerate(self._path.read_bytes().splitlines(), 1):
            if not text.strip():
                continue
            try:
                line = json.loads(text, parse_constant=_refused)
                if header is None:
                    _check_header(line)
                    header = line
                else:
                    _check_line(line)
                    self._add(line)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise HarnessError(
                    f"{self._path}, line {number}: not a line of a recording ({type(error).__name__}: {error}); "
                    "delete the file and record again"
                ) from error
        if header is None:
            raise HarnessError(f"{self._path} is empty; delete it and record again")
        return header

    def _add(self, line: dict[str, Any]) -> None:
        model, run, at = str(line["model"]), int(line["run"]), str(line["state"])
        self._lines[(model, run, at, tuple(sorted(line["answers"])))] = line
        for key, answer in line["answers"].items():
            self._answers[(model, run, at, key)] = (line, answer)


def recorded(spec: str, folder: Path, *, replay: bool, fresh: bool = False) -> RecordingDecider:
    """Return a decider whose answers are recorded in, or replayed from, a folder.

    Args:
        spec: Its specification.
        folder: Holds one file per decider.
        replay: Whether nobody is asked; then the decider itself is not even made.
        fresh: Whether answers recorded before are thrown away.
    """
    path = recording_path(spec, folder)
    decider = None if replay else open_decider(spec)
    return RecordingDecider(decider, path, replay, name=spec, fresh=fresh)


def recording_path(spec: str, folder: Path) -> Path:
    """Return where a decider's answers are kept."""
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '_', spec)}.jsonl"


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _check_header(line: Mapping[str, Any]) -> None:
    for field in ("decider", "model"):
        _check(isinstance(line[field], str), field, line[field])
    deadline, thresholds = line.get("deadline_s"), line.get("thresholds")
    _check(deadline is None or _is_number(deadline, 0, math.inf), "deadline_s", deadline)
    _check_thresholds(thresholds)
    Thresholds(**(thresholds or {"gate": 0, "router": 0, "validator": 0}))


def _check_line(line: Mapping[str, Any]) -> None:
    for field in ("model", "state"):
        _check(isinstance(line[field], str), field, line[field])
    _check(type(line["run"]) is int, "run", line["run"])
    _check(_is_number(line["ms"], 0, math.inf), "ms", line["ms"])
    error = line.get("error")
    _check(error is None or isinstance(error, str), "error", error)
    _check(line.get("reported") is None or isinstance(line["reported"], str), "reported", line.get("reported"))
    _check_thresholds(line.get("thresholds"))
    for answer in line["answers"].values():
        _check(_is_answer(answer, failed=bool(error)), "answer", answer)


def _check_thresholds(thresholds: Mapping[str, Any] | None) -> None:
    known = [one for one in (thresholds or {}).values() if one is not None]
    _check(all(_is_number(one, 0, 1) for one in known), "thresholds", thresholds)


def _check(ok: bool, field: str, value: object) -> None:
    if not ok:
        raise ValueError(f"{field}: {value!r}")


def _is_number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and low <= value <= high


def _is_answer(value: Any, *, failed: bool) -> bool:
    if not isinstance(value, Mapping):
        return value is None if failed else _is_number(value, 0, 1)
    if "choice" in value or "score" in value:
        p = value.get("p")
        if not isinstance(p, Mapping) or not all(_is_number(one, 0, 1) for one in p.values()):
            return False
        return value["choice"] in p if "choice" in value else _is_number(value["score"], -math.inf, math.inf)
    return value.get("none") in _REASONS


def state_hash(state: State) -> str:
    """Return the SHA-256 of a state, in canonical JSON."""
    return _hash({"message": state["message"], "previous": list(state["previous"])})


def question_hash(question: Question) -> str:
    """Return the SHA-256 of a question: its wire fields, `about` and `subject`."""
    return _hash({**question.wire(), "about": question.about, "subject": question.subject})


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:_HASH]


def _header(decider: Decider, name: str) -> dict[str, Any]:
    own = getattr(decider, "thresholds", None)
    deadline = getattr(decider, "deadline_s", None)
    return {
        "decider": name,
        "model": model_key(decider, name),
        "thresholds": asdict(own) if isinstance(own, Thresholds) else None,
        "deadline_s": float(deadline) if isinstance(deadline, int | float) else None,
    }


def _plain(answer: Answer) -> Any:
    if isinstance(answer, Noul):
        return answer.noul
    if isinstance(answer, Choice):
        return {"choice": answer.choice, "p": dict(answer.probabilities)}
    if isinstance(answer, Score):
        return {"score": answer.score, "p": dict(answer.probabilities)}
    return {"none": answer.reason}


_REASONS = frozenset(get_args(NoAnswerReason))


def _answer(value: Any) -> Answer:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Noul(float(value))
    if isinstance(value, Mapping) and "choice" in value:
        return Choice(str(value["choice"]), dict(value["p"]))
    if isinstance(value, Mapping) and "score" in value:
        return Score(float(value["score"]), dict(value["p"]))
    reason = value.get("none") if isinstance(value, Mapping) else None
    return NoAnswer(cast(Any, reason) if reason in _REASONS else "invalid")
