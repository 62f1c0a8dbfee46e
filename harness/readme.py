"""Fill the README's measured parts: the demo as printed, and the embedded model's figures.

    python -m harness.readme            # writes README.md and docs/embedded-model.md
    python -m harness.readme --check    # fails when the deterministic parts differ from what is there

Nothing between the markers is typed by hand. Times are measured in this run; `--check` leaves them out.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from strands_gated_memory import RecallPolicy
from strands_gated_memory.cli import main as command
from strands_gated_memory.embedded.decider import EmbeddedDecider
from strands_gated_memory.embedded.encoder import DATA, Encoder
from strands_gated_memory.embedded.heads import read_about, read_heads

from .training.evaluate import measure
from .training.examples import gate_rows, namespace_rows, record_rows
from .training.personas import read_personas

ROOT = Path(__file__).parents[1]
CORPUS = Path(__file__).parent / "training" / "corpus"
LOOKUP_MS = 529


def demo() -> str:
    """Return what `strands-gated-memory demo` prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        command(["demo"])
    return f"```\n{shown.getvalue().rstrip()}\n```"


def held_out() -> dict[str, Any]:
    """Return the embedded model's figures on the test personas, which nothing was fitted or chosen on."""
    personas = [one for one in read_personas(CORPUS, test=True) if one.split == "test"]
    encoder = Encoder(cache_entries=1_000_000)
    rows = {"gate": gate_rows, "namespace": namespace_rows, "record": record_rows}
    about, heads = read_about(DATA / "heads.npz"), read_heads(DATA / "heads.npz")
    figures = measure(heads, about.thresholds, {name: make(personas, encoder) for name, make in rows.items()})
    return {"personas": len(personas), "thresholds": vars(about.thresholds), **figures}


def speed() -> dict[str, float]:
    """Return times in ms and memory in MB, each measured in a fresh process."""
    code = "from harness.readme import timed; import json; print(json.dumps(timed()))"
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(run.stdout)
    return result


def timed() -> dict[str, float]:
    """Measure in this process: cold load, a turn's decisions, resident memory."""
    from strands_gated_memory.core.questions import GATE, GATE_ID, Question, namespace_question, record_question

    started = time.perf_counter()
    decider = EmbeddedDecider()
    decider.warm()
    cold = 1000 * (time.perf_counter() - started)
    gate: dict[str, Question] = {
        GATE_ID: GATE,
        "a": namespace_question("facts about the user"),
        "b": namespace_question("the user's preferences"),
    }
    history = ["Which train goes to Leeds?", "The 9.30 from platform four, changing at York."]

    def ask(turn: int, previous: list[str]) -> None:
        decider.decide({"message": f"What should I take along on trip number {turn}?", "previous": previous}, gate)

    def judge(turn: int, new: bool) -> None:
        records = {
            str(n): record_question(f"The user keeps {n * 7 + turn * new * 1000} books about the sea in the {n} room")
            for n in range(20)
        }
        decider.decide({"message": f"Where is book {turn}?", "previous": []}, records)

    return {
        "cold_load_ms": cold,
        "gate_and_route_ms": _median(lambda turn: ask(turn, [])),
        "gate_and_route_with_history_ms": _median(lambda turn: ask(turn, history)),
        "twenty_new_records_ms": _median(lambda turn: judge(turn, True)),
        "twenty_cached_records_ms": _median(lambda turn: judge(turn, False)),
        "resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _median(call: Callable[[int], None], runs: int = 40) -> float:
    times = []
    for turn in range(runs):
        started = time.perf_counter()
        call(turn)
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times[3:])


def model_section(figures: dict[str, Any], times: dict[str, float] | None) -> str:
    """Return the README's part on the embedded model."""
    gate, route, relevance = figures["gate"], figures["route"], figures["relevance"]
    size = sum(path.stat().st_size for path in DATA.iterdir()) / 1e6
    lines = [
        f"The embedded model on {figures['personas']} held-out personas ({gate['turns']} turns), "
        "written by authors who saw neither its training data nor its errors:",
        "",
        "| decision | figure | |",
        "|---|---|---|",
        f"| gate | AUC / recall of turns that need memory / share of the others closed | "
        f"{gate['auc']:.3f} / {gate['recall']:.3f} / {gate['skip']:.3f} |",
        f"| route | AUC / needed namespaces searched / others avoided | "
        f"{route['auc']:.3f} / {route['recall']:.3f} / {route['avoided']:.3f} |",
        f"| relevance | AUC must-have / AUC useful or must-have | "
        f"{relevance['auc_grade_2']:.3f} / {relevance['auc_grade_1_or_2']:.3f} |",
        f"| relevance | must-haves kept / records without bearing dropped | "
        f"{relevance['recall_grade_2']:.3f} / {relevance['dropped_grade_0']:.3f} |",
        f"| calibration error | gate / relevance | "
        f"{gate['calibration_error']:.3f} / {relevance['calibration_error']:.3f} |",
        "",
        "Its cuts, chosen on other personas, recall first: "
        + ", ".join(f"{name} {value:g}" for name, value in figures["thresholds"].items() if value is not None)
        + ".",
        f"Its files are {size:.0f} MB of the wheel. Details and checksums: "
        "[docs/embedded-model.md](docs/embedded-model.md).",
    ]
    if times:
        lines += [
            "",
            f"On 2 cores, measured in one run: cold load {times['cold_load_ms']:.0f} ms (in a daemon thread at "
            f"construction, so the first turn waits only for what is left of it); gate and router "
            f"{times['gate_and_route_ms']:.1f} ms, with history {times['gate_and_route_with_history_ms']:.1f} ms "
            f"({times['gate_and_route_ms'] / LOOKUP_MS:.1%} and "
            f"{times['gate_and_route_with_history_ms'] / LOOKUP_MS:.1%} of the modelled lookup); 20 new records "
            f"{times['twenty_new_records_ms']:.1f} ms, 20 seen before {times['twenty_cached_records_ms']:.1f} ms; "
            f"{times['resident_mb']:.0f} MB resident at the peak, Python and the SDKs included.",
        ]
    return "\n".join(lines)


def document(figures: dict[str, Any]) -> str:
    """Return docs/embedded-model.md."""
    sums = "\n".join(
        f"| `{path.name}` | {path.stat().st_size:,} | `{hashlib.sha256(path.read_bytes()).hexdigest()}` |"
        for path in sorted(DATA.iterdir())
    )
    return f"""# The embedded decision model

`decider="embedded"`: the all-MiniLM-L6-v2 sentence encoder (Apache-2.0), fine-tuned on the labelled personas of
`harness/training/corpus/` for three decisions, stored as weight-only int8 ONNX, and one small head per decision.
Written by `python -m harness.readme`; rebuilt as `harness/training/README.md` says.

| file | bytes | SHA-256 |
|---|---|---|
{sums}

The test personas were written by authors who saw neither training data nor the model's errors. Encoder and heads were
fitted on the train split; calibration and thresholds come from the dev split. The cut relative to the best, how much of
a reply is read, and two surface features of a message were also looked at on eight demo personas outside the corpus.

```json
{json.dumps(figures, indent=1)}
```

`recall`, `skip`, `avoided`, `recall_grade_2` and `dropped_grade_0` are shares at the shipped thresholds; AUC is pooled
over turns that need memory; calibration error is the expected calibration error over ten bins.

It must not be used to decide anything about people: it says whether a note bears on a message, in English, and is
often wrong about notes that matter only indirectly.
"""


def replace(text: str, marker: str, content: str) -> str:
    """Return the text with what stands between a marker's two comments replaced."""
    pattern = re.compile(rf"(<!-- {marker}:start -->\n).*?(<!-- {marker}:end -->)", re.S)
    return pattern.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


def with_defaults(text: str) -> str:
    """Return the README with the policy's default thresholds in its table."""
    policy = RecallPolicy()
    for row, value in (
        ("gate.threshold", policy.gate.threshold),
        ("router.threshold", policy.router.threshold),
        ("validator.threshold", policy.validator.threshold),
    ):
        text = re.sub(rf"(\| `{re.escape(row)}` \| )[^|]+( \|)", rf"\g<1>{value:g}\g<2>", text)
    return re.sub(
        r"(\| `select.mode`, `.relative` \| )[^|]+( \|)", rf'\g<1>`"hybrid"`, {policy.select.relative:g}\g<2>', text
    )


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    readme, page = ROOT / "README.md", ROOT / "docs" / "embedded-model.md"
    figures = held_out()
    if options.check:
        shown = model_section(figures, None)
        stale = [
            name
            for name, ok in (
                ("README.md", shown in readme.read_text(encoding="utf-8")),
                ("docs/embedded-model.md", page.read_text(encoding="utf-8") == document(figures)),
            )
            if not ok
        ]
        print(f"stale: {', '.join(stale)}; run python -m harness.readme" if stale else "README and docs are current")
        return int(bool(stale))
    text = with_defaults(readme.read_text(encoding="utf-8"))
    text = replace(text, "demo", demo())
    text = replace(text, "model", model_section(figures, speed()))
    readme.write_text(text, encoding="utf-8")
    page.parent.mkdir(exist_ok=True)
    page.write_text(document(figures), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
