"""Time and memory of the embedded model, as ratios to the lookup that it may save and to plain MiniLM.

    python -m harness.benchmarks.embedded [--json]

The lookup is modelled: 529 ms is what the post that this project follows measured for one search of AgentCore
Memory. Plain MiniLM is the base encoder, not fine-tuned, in the same runtime, encoding the same texts and comparing
them by cosine; it needs the extra [training] and is left out without it. Both are measured in this run, in turn
about, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOOKUP_MS = 529
WARM_UP, RUNS = 5, 60
HISTORY = ["Which train goes to Leeds?", "The 9.30 from platform four, changing at York; it takes two hours."]
DESCRIPTIONS = ("facts about the user: their life, health, people, places and work", "the user's preferences")
ROWS = {
    "gate_and_route_ms": "gate and route",
    "gate_and_route_with_history_ms": "gate and route, with history",
    "twenty_new_records_ms": "20 new records of 17 tokens",
    "twenty_cached_records_ms": "20 cached records",
}


def message(turn: int) -> str:
    """Return a message that no cache has seen."""
    return f"What should I take along on the trip number {turn}?"


def record(n: int) -> str:
    """Return a record of about 17 tokens."""
    return f"The user keeps {n} books about the sea in the small room upstairs"


def decisions() -> dict[str, float]:
    """Measure the shipped decider in this process."""
    from strands_gated_memory.core.questions import Question
    from strands_gated_memory.core.wordings import GATE_CRITERIA, RECORD_CRITERIA, ROUTE_CRITERIA

    before = resident_mb()
    started = time.perf_counter()
    from strands_gated_memory.embedded.decider import EmbeddedDecider

    decider = EmbeddedDecider()
    decider.warm()
    cold = 1000 * (time.perf_counter() - started)
    gate: dict[str, Question] = {
        "gate": GATE_CRITERIA.question(),
        **{text: ROUTE_CRITERIA.question(text) for text in DESCRIPTIONS},
    }

    def ask(turn: int, previous: list[str]) -> None:
        decider.decide({"message": message(turn), "previous": previous}, gate)

    def judge(turn: int, first: int) -> None:
        questions = {str(n): RECORD_CRITERIA.question(record(first + n)) for n in range(20)}
        decider.decide({"message": message(turn), "previous": []}, questions)

    times = {
        "cold_load_ms": cold,
        "gate_and_route_ms": median_ms(lambda turn: ask(turn, [])),
        "gate_and_route_with_history_ms": median_ms(lambda turn: ask(turn, HISTORY)),
        "twenty_new_records_ms": median_ms(lambda turn: judge(turn, 1000 + 20 * turn)),
        "twenty_cached_records_ms": median_ms(lambda turn: judge(turn, 0)),
    }
    for n in range(10):
        judge(n, 20 * n + 100)
    return {**times, "resident_mb": resident_mb(), "resident_without_model_mb": before}


def plain(folder: str) -> dict[str, float]:
    """Measure an encoder alone: encode the same texts, compare by cosine."""
    from strands_gated_memory.embedded.encoder import Encoder

    encoder = Encoder(folder)
    encoder.load()

    def compare(texts: list[str]) -> None:
        vectors = encoder.encode(texts)
        _ = vectors[1:] @ vectors[0]

    return {
        "gate_and_route_ms": median_ms(lambda turn: compare([message(turn), *DESCRIPTIONS])),
        "gate_and_route_with_history_ms": median_ms(
            lambda turn: compare(["\n".join([*HISTORY, message(turn)]), *DESCRIPTIONS])
        ),
        "twenty_new_records_ms": median_ms(
            lambda turn: compare([message(turn), *(record(1000 + 20 * turn + n) for n in range(20))])
        ),
        "twenty_cached_records_ms": median_ms(lambda turn: compare([message(turn), *(record(n) for n in range(20))])),
    }


_turns = iter(range(10**9))


def median_ms(call: Callable[[int], None]) -> float:
    """Return the median time of a call with a new number each time, in milliseconds."""
    times = []
    for _ in range(WARM_UP + RUNS):
        turn = next(_turns)
        started = time.perf_counter()
        call(turn)
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times[WARM_UP:])


def resident_mb() -> float:
    """Return this process's resident memory in MB, 0 where /proc does not tell."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def in_a_process(call: str) -> dict[str, float]:
    """Run `call` of this module in a fresh interpreter and return what it measured."""
    code = f"import json; from harness.benchmarks.embedded import *; print(json.dumps({call}))"
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(run.stdout)
    return found


def base_encoder(folder: Path) -> bool:
    """Write plain MiniLM in the shipped format; False without the extra [training]."""
    try:
        from harness.training.export import CORPUS, default_checkpoint, seen_texts, write_encoder

        write_encoder(default_checkpoint(), folder, seen_texts(CORPUS))
    except ImportError:
        return False
    return True


def measure() -> dict[str, Any]:
    """Measure both, in turn about, and keep the better of two runs of each."""
    with tempfile.TemporaryDirectory() as name:
        has_base = base_encoder(Path(name))
        ours: list[dict[str, float]] = []
        base: list[dict[str, float]] = []
        for _ in range(2):
            ours.append(in_a_process("decisions()"))
            if has_base:
                base.append(in_a_process(f"plain({name!r})"))
    return {
        "embedded": {key: min(run[key] for run in ours) for key in ours[0]},
        "plain_minilm": {key: min(run[key] for run in base) for key in base[0]} if base else None,
    }


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure()
    if options.json:
        print(json.dumps(found, indent=1))
        return
    ours, base = found["embedded"], found["plain_minilm"]
    print(f"{'':32}{'ms':>8}{'of a lookup':>13}{'to plain MiniLM':>17}")
    for key, name in ROWS.items():
        ratio = f"{ours[key] / base[key]:.2f}" if base else "not installed"
        print(f"{name:32}{ours[key]:8.1f}{ours[key] / LOOKUP_MS:13.1%}{ratio:>17}")
    print(f"{'cold load':32}{ours['cold_load_ms']:8.0f}{ours['cold_load_ms'] / LOOKUP_MS:13.1%}")
    print(
        f"resident after 200 mixed records: {ours['resident_mb']:.0f} MB, "
        f"of which {ours['resident_without_model_mb']:.0f} MB were there before the model"
    )


if __name__ == "__main__":
    main()
