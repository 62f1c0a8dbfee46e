"""A BidiAgent is left alone, as the stock manager leaves it: stored, and nothing recalled."""

import asyncio

import pytest
from turn_builders import GATED, STOCK, spoken, yes

try:
    from strands.bidi import BidiAgent
    from strands.bidi.models import BidiModel
except ImportError:  # its place before it left the experimental package
    from strands.experimental.bidi import BidiAgent
    from strands.experimental.bidi.models import BidiModel


class Silent(BidiModel):
    """A speech model that is connected and says nothing."""

    def __init__(self):
        self.sent = []

    def update_config(self, **config):
        """Accept nothing."""

    def get_config(self):
        return {"model_id": "silent"}

    async def start(self, *arguments, **keywords):
        """Connect to nothing."""

    async def stop(self):
        """Disconnect from nothing."""

    async def send(self, content):
        self.sent.append(content)

    async def receive(self):
        await asyncio.sleep(30)
        yield


@pytest.mark.parametrize("kind", [STOCK, GATED])
def test_a_bidi_agent_is_stored_and_nothing_is_recalled(bench, kind):
    """Typed text is persisted; no search, no block, no count, no middleware."""
    bench.remember("Likes tea")
    manager = bench.manager(kind, decider=yes)
    agent = BidiAgent(model=Silent(), session_manager=manager)

    async def talk():
        await agent.start()
        await agent.send("What do I drink?")
        await agent.stop()

    asyncio.run(talk())

    assert spoken(agent.messages) == [("user", "What do I drink?")]
    assert "What do I drink?" in bench.stored()
    assert "Likes tea" not in str(agent.model.sent)
    assert bench.queries() == []
    if kind == GATED:
        assert manager.stats.turns == 0
