"""Where the block stands, what it looks like, and the stock manager's way of keeping it."""

import sys

import pytest
from turn_builders import BEFORE, GATED, STOCK, blocks_kept, blocks_per_call, last_block, yes

from strands_gated_memory import ConfigurationError, RecallPolicy
from strands_gated_memory.testing.model import blocks_shown


@pytest.mark.parametrize(
    ("inject", "expected"),
    [
        ({}, ["What do I drink?", "\n\n<user_context>\nLikes tea\n</user_context>"]),
        pytest.param(
            {"position": "before"},
            ["<user_context>\nLikes tea\n</user_context>\n\n", "What do I drink?"],
            marks=BEFORE.marks,
        ),
        (
            {"mode": "history", "position": "before"},
            ["<user_context>\nLikes tea\n</user_context>", "What do I drink?"],
        ),
        ({"mode": "history", "position": "after"}, ["What do I drink?", "<user_context>\nLikes tea\n</user_context>"]),
    ],
)
def test_the_block_stands_beside_the_users_text(bench, inject, expected):
    """`inject.position` places it after (default) or before, in both modes, in the user's own message."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes, policy={"inject": inject}))

    agent("What do I drink?")

    (message,) = agent.model.calls[0]
    assert message["role"] == "user"
    assert [block["text"] for block in message["content"]] == expected


def test_dates_are_printed_when_asked_for(bench):
    """`inject.show_dates` puts the day of writing before a record."""
    bench.plant(memoryRecordId="mem-1", text="Likes tea", createdAt=1773532800.0)
    agent = bench.agent(bench.manager(decider=yes, policy={"inject": {"show_dates": True}}))

    agent("What do I drink?")

    assert last_block(agent) == ["[2026-03-15] Likes tea"]


def test_the_configured_tag_wraps_the_block(bench):
    """`context_tag` of the parent's configuration is honoured."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes, context_tag="notes"))

    agent("What do I drink?")

    assert blocks_shown(agent.model.calls[0], "notes") == ["<notes>\nLikes tea\n</notes>"]


@pytest.mark.parametrize("kind", [STOCK, GATED])
def test_history_mode_keeps_blocks_as_the_stock_manager_does(bench, kind):
    """One more block per turn, in the conversation, on every call."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(kind, policy={"inject": {"mode": "history", "position": "before"}}))

    for number in range(4):
        agent(f"What do I drink? {number}")

    assert blocks_per_call(agent) == [1, 2, 3, 4]
    assert len(blocks_kept(agent)) == 4
    assert "Likes tea" not in bench.stored()


def test_the_stock_policy_needs_no_middleware_of_strands(bench, monkeypatch):
    """On Strands before 1.62 only "before" in turn mode is refused, at construction, with what to write."""
    monkeypatch.setitem(sys.modules, "strands.middleware", None)  # importing it fails, as it does there
    bench.remember("Likes tea")

    agent = bench.agent(bench.manager(policy=RecallPolicy.stock()))
    agent("What do I drink?")
    with pytest.raises(ConfigurationError, match=r'write inject\.position="after"'):
        bench.manager(policy={"inject": {"position": "before"}})

    assert blocks_per_call(agent) == [1]
