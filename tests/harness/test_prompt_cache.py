"""The model of a prompt cache, by hand-worked requests, and what the README says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import readme
from harness.benchmarks.prompt_cache import ARMS, GOAL, PromptCache, measure

POINT = {"cachePoint": {"type": "default"}}
STOCK, BEFORE, AFTER = ARMS


def request(*blocks):
    """Return a request of one user message; a number is a text of so many tokens, a pair names it too."""
    content = []
    for block in blocks:
        name, tokens = block if isinstance(block, tuple) else ("x", block)
        content.append(POINT if block is POINT else {"text": name * (4 * tokens)})
    return {"system": [], "messages": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(
    ("requests", "tokens"),
    [
        pytest.param([request(1_000)], 1_000, id="nothing cached"),
        pytest.param([request(1_000, POINT)], 1_250, id="written"),
        pytest.param([request(1_000, POINT, 100)], 1_350, id="written, then in full"),
        pytest.param([request(1_000, POINT), request(1_000, POINT)], 1_250 + 100, id="read"),
        pytest.param([request(1_000, POINT), request(1_000, ("y", 200), POINT)], 1_250 + 100 + 250, id="extended"),
        pytest.param([request(1_000, POINT), request(("y", 100), 1_000, POINT)], 1_250 + 1_375, id="another beginning"),
        pytest.param([request(1_000, POINT), request(1_000)], 1_250 + 1_000, id="no cache point, no reading"),
        pytest.param([request(100, POINT), request(100, *[1] * 21, POINT)], 125 + 1.25 * 121, id="too far back"),
    ],
)
def test_a_request_costs_what_is_read_written_and_paid_in_full(requests, tokens):
    cache = PromptCache()
    for one in requests:
        cache.charge(one)

    assert cache.units == pytest.approx(tokens / 1_000)


@pytest.fixture(scope="module")
def costs():
    return measure()


def test_the_block_after_the_text_costs_less_than_stock(costs):
    assert costs.without_tools[AFTER] <= GOAL
    assert round(costs.without_tools[STOCK]) == pytest.approx(85, abs=2)
    assert costs.with_tools[AFTER] < costs.with_tools[STOCK] < costs.with_tools[BEFORE]


def test_the_readme_says_what_the_command_prints(costs, monkeypatch):
    monkeypatch.setattr(readme.prompt_cache, "measure", lambda: costs)

    assert readme.cache_section() in (Path(readme.ROOT) / "README.md").read_text(encoding="utf-8")
