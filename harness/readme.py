"""Fill the README's measured parts: the demo as printed, the embedded model's figures, the cost with prompt caching.

    python -m harness.readme            # writes README.md
    python -m harness.readme --figures  # writes the embedded model's figures alone, keeps the rest and the times
    python -m harness.readme --cache    # writes the cost with prompt caching alone
    python -m harness.readme --check    # fails when the deterministic parts differ from what is there

Nothing between the markers is typed by hand. Times are measured in the run that writes them; `--check` leaves them out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
from pathlib import Path

from strands_gated_memory import RecallPipeline
from strands_gated_memory.cli import main as command
from strands_gated_memory.embedded.decider import EmbeddedDecider
from strands_gated_memory.embedded.encoder import DATA, Encoder
from strands_gated_memory.policy import CutName

from .benchmarks import prompt_cache
from .benchmarks.embedded import LOOKUP_MS, measure
from .training.card import OTHER_AUTHORS, figures, trade_off
from .training.personas import read_messages, read_personas, read_stores
from .training.scored import Scorer

ROOT = Path(__file__).parents[1]
CORPUS = Path(__file__).parent / "training" / "corpus"


def demo() -> str:
    """Return what `strands-gated-memory demo` prints."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        command(["demo"])
    return f"```\n{shown.getvalue().rstrip()}\n```"


ROWS = (
    "gate: accuracy at P = 0.5",
    "gate: AUC",
    "gate: recall of needed turns",
    "gate: share of unneeded turns closed",
    "gate: same words, other history, both right",
    "route: recall per needed namespace",
    "route: searches avoided",
    "relevance: mean AUC, grade 2",
    "relevance: mean AUC, grade ≥ 1",
    "relevance: mean P@k",
    "after selection: recall of grade 2",
    "after selection: grade 0 kept, of 15",
    "after selection: kept when nothing bears",
)
"""The rows of the model card that the README repeats."""


TIMES = "On 2 cores, `python -m harness.benchmarks.embedded`:"
"""How the paragraph of times begins."""


def model_section() -> str:
    """Return the README's part on the embedded model, measured on the test personas: nothing was chosen on them."""
    scorer = Scorer(EmbeddedDecider(Encoder(cache_entries=1_000_000)))
    personas = [one for one in read_personas(CORPUS, test=True) if one.split == "test"]
    turns = list(scorer.personas(personas))
    stores, messages = read_stores(CORPUS, "test"), read_messages(CORPUS, "test")
    judged, gated = list(scorer.personas(stores)), list(scorer.messages(messages))
    rows = {row.name: row for row in figures(scorer.thresholds.gate)}
    size = sum(path.stat().st_size for path in DATA.iterdir()) / 1e6
    return "\n".join(
        [
            f"The embedded model on {len(personas)} held-out personas ({len(turns)} turns), and on "
            f"{len(messages)} messages and {len(stores)} stores ({len(judged)} queries) of other held-out authors, "
            "who saw neither its training data nor its errors:",
            "",
            "| figure | personas | goal | messages, stores |",
            "|---|---|---|---|",
            *(
                f"| {name} | {_shown(rows[name].of(turns))} | {rows[name].goal} | "
                f"{_shown(rows[name].of(gated if name.startswith('gate') else judged))} |"
                for name in ROWS
            ),
            "",
            "What other relative cuts would keep of the records of other authors' stores, without a floor:",
            "",
            trade_off(list(scorer.relevance_items(OTHER_AUTHORS / "relevance_ood_dev.json"))),
            "",
            "Its cuts were chosen on other personas, messages and stores, recall first: "
            + ", ".join(f"{name} {value:g}" for name, value in vars(scorer.thresholds).items() if value is not None)
            + f". Its files are {size:.0f} MB of the wheel. Intervals, data, method, worst cases and checksums: "
            "[docs/model-card.md](docs/model-card.md).",
        ]
    )


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def times_section(times: dict[str, float]) -> str:
    """Return the README's paragraph on times, from what the benchmark measured in milliseconds and megabytes."""
    return (
        f"{TIMES} cold load {times['cold_load_ms']:.0f} ms (in a "
        "daemon thread at construction, so the first turn waits only for what is left of it); gate and router "
        f"{times['gate_and_route_ms']:.1f} ms, with history {times['gate_and_route_with_history_ms']:.1f} ms "
        f"({times['gate_and_route_ms'] / LOOKUP_MS:.1%} and "
        f"{times['gate_and_route_with_history_ms'] / LOOKUP_MS:.1%} of the modelled lookup); 20 new records "
        f"{times['twenty_new_records_ms']:.1f} ms, 20 seen before {times['twenty_cached_records_ms']:.1f} ms; "
        f"{times['resident_mb']:.0f} MB resident after 200 records, of which "
        f"{times['resident_without_model_mb']:.0f} MB are Python and the SDKs without the model."
    )


def cache_section() -> str:
    """Return the README's part on what the block costs where the prompt is cached."""
    return "\n".join(
        [
            "**With prompt caching**, the gate open on every turn, as `python -m harness.benchmarks.prompt_cache` "
            "models it with Strands' own cache points. A unit is the price of 1,000 uncached input tokens:",
            "",
            prompt_cache.table(prompt_cache.measure()),
        ]
    )


def times_in(text: str) -> str:
    """Return the paragraph on times of a README.

    Raises:
        ValueError: It has none.
    """
    found = re.search(rf"^{re.escape(TIMES)}.*$", text, re.M)
    if found is None:
        raise ValueError(f"README.md has no paragraph that begins with {TIMES!r}; run python -m harness.readme")
    return found[0]


def replace(text: str, marker: str, content: str) -> str:
    """Return the text with what stands between a marker's two comments replaced."""
    pattern = re.compile(rf"(<!-- {marker}:start -->\n).*?(<!-- {marker}:end -->)", re.S)
    return pattern.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


CUT_ROWS: dict[CutName, tuple[str, str]] = {
    "gate": ("`gate.threshold`", ""),
    "router": ("`router.threshold`", ""),
    "validator": ("`validator.threshold`", ""),
    "relative": ("`select.mode`, `.relative`", '`"hybrid"`, '),
}
"""Of each cut: its row in the table of settings, and what stands before it in the cell of defaults."""


def with_cuts(text: str) -> str:
    """Return the README with the cuts in force in its table: those of the embedded model, and of one without any."""
    embedded, bare = (RecallPipeline(one).cuts_in_force() for one in (EmbeddedDecider(), None))
    for name, (row, before) in CUT_ROWS.items():
        cell = f"{before}{getattr(embedded, name).value:g} (else {getattr(bare, name).value:g})"
        text = re.sub(rf"(\| {re.escape(row)} \| )[^|]+( \|)", rf"\g<1>{cell}\g<2>", text)
    return text


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help="write nothing; fail when the figures are stale")
    only.add_argument("--figures", action="store_true", help="write the figures, keep the demo and the times")
    only.add_argument("--cache", action="store_true", help="write the cost with prompt caching, keep the rest")
    options = parser.parse_args()
    readme = ROOT / "README.md"
    if options.check:
        shown = readme.read_text(encoding="utf-8")
        current = with_cuts(shown) == shown and all(section() in shown for section in (model_section, cache_section))
        print("README is current" if current else "stale: run python -m harness.readme")
        return int(not current)
    text = readme.read_text(encoding="utf-8")
    if options.cache:
        readme.write_text(replace(text, "cache", cache_section()), encoding="utf-8")
        return 0
    text = with_cuts(text)
    if options.figures:
        times = times_in(text)
    else:
        text = replace(replace(text, "demo", demo()), "cache", cache_section())
        times = times_section(measure()["embedded"])
    text = replace(text, "model", f"{model_section()}\n\n{times}")
    readme.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
