"""The native Strands memory path, offline: a store that ships with Strands, a tool, the embedded decision model.

pip install strands-gated-memory, or from a clone: pip install .
python examples/memory_manager.py

Any `MemoryStore` stands in place of these: mem0's, Zep's, DynamoDB, MongoDB, Postgres, AgentCore's.
"""

import asyncio

from strands import Agent, tool
from strands.vended_memory_stores import TestMemoryStore

from strands_gated_memory import GatedMemoryManager
from strands_gated_memory.testing import ScriptedModel, blocks_shown
from strands_gated_memory.testing.model import ToolCall

FACTS = ("The user must not have peanuts at dinner: an allergy.", "The user has a sister in Ghent.")
PREFERENCES = ("For dinner the user wants quiet places with vegetarian food.",)


@tool
def calendar(day: str) -> str:
    """Look up what is planned."""
    return f"Nothing is planned for {day}."


async def stores() -> list[TestMemoryStore]:
    """Return two stores; the decision model chooses between them by their descriptions."""
    facts = TestMemoryStore(name="facts", description="facts about the user: health, home, work", persist=False)
    preferences = TestMemoryStore(name="preferences", description="what the user likes and wants", persist=False)
    for store, texts in ((facts, FACTS), (preferences, PREFERENCES)):
        for text in texts:
            await store.add(text)
    return [facts, preferences]


def main() -> None:
    """Ask two things: one needs no memory; the other needs it, before and after a tool."""
    memory_manager = GatedMemoryManager(stores=asyncio.run(stores()))
    memory_manager.warm()  # so that the first turn does not wait for the model
    # Any Strands model; this one says what is written here, and keeps what it is shown.
    model = ScriptedModel(
        ["Hello!", ToolCall("calendar", {"day": "Friday"}), "How about the quiet place by the river?"]
    )
    agent = Agent(model=model, memory_manager=memory_manager, tools=[calendar], callback_handler=None)
    for prompt in ("Hello!", "Where could I have dinner on Friday?"):
        before = len(model.calls)
        agent(prompt)
        for number, call in enumerate(model.calls[before:], start=1):
            shown = "\n".join(blocks_shown(call)) or "(no memory was needed)"
            print(f"> {prompt} (model call {number})\n{shown}\n")
    print(memory_manager.stats)


if __name__ == "__main__":
    main()
