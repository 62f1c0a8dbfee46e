"""The memory managers whose own time `harness.benchmarks.load` compares: Strands' own and ours, over the same stores.

A store answers at once, from a list: what is left is what each manager does. Strands' own searches side by side on the
event loop and takes no decisions; its limit of entries is raised to what the stores hold, so that all show the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strands import Agent
from strands.memory import MemoryEntry, MemoryManager, MemoryStore, SearchOptions

from strands_gated_memory import GatedMemoryManager, RecallPolicy

from .load import NAMESPACES, RECORDS, LastBlock, Talk, always_yes, text_of


class FakeStore(MemoryStore):
    """A store of one user's records in one namespace."""

    max_search_results = None
    writable = False
    extraction = None

    def __init__(self, actor: str, namespace: str) -> None:
        self.name = namespace.split("/")[1]
        self.description = f"{self.name} of the user"
        self._entries = [
            MemoryEntry(text_of(actor, namespace, number), metadata={"_id": f"{number}", "_score": 0.9 - number / 100})
            for number in range(RECORDS)
        ]

    async def search(
        self,
        query: str,  # noqa: ARG002
        options: SearchOptions | None = None,  # noqa: ARG002
    ) -> list[MemoryEntry]:
        """Return all of them."""
        return self._entries


def memory_managers() -> dict[str, Callable[[str], Talk]]:
    """Return what makes a user's conversation over each memory manager."""
    policy = RecallPolicy(stats_log="off", select={"max_records": None, "max_context_tokens": None})

    def stock(actor: str, **settings: Any) -> Talk:
        return _talk(actor, MemoryManager(_stores(actor), **settings))

    def ours(actor: str, decider: Any) -> Talk:
        return _talk(actor, GatedMemoryManager(_stores(actor), decider=decider, policy=policy))

    return {
        "no recall": lambda actor: stock(actor, injection=False),
        "stock": lambda actor: stock(actor, injection={"max_entries": RECORDS * len(NAMESPACES)}),
        "no decider": lambda actor: ours(actor, None),
        "gated": lambda actor: ours(actor, always_yes),
    }


def _stores(actor: str) -> list[MemoryStore]:
    return [FakeStore(actor, name.replace("{actorId}", actor)) for name in NAMESPACES]


def _talk(actor: str, manager: MemoryManager) -> Talk:
    return Talk(actor, Agent(model=LastBlock(), memory_manager=manager, callback_handler=None))
