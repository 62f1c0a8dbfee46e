"""Each seam of Strands that the memory manager is built on: when a release moves one, the test's name says which.

A failure means: read that part of `memory_manager.py`, `retrieval/stores.py` or docs/memory-manager.md again.
tests/turns/test_memory_*.py says what users notice of it.
"""

import ast
import asyncio
import inspect
import itertools
import typing
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest
from bedrock_agentcore.memory.integrations.strands.memorystore import AgentCoreMemoryStore
from strands import Agent
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, BeforeModelCallEvent
from strands.hooks.registry import HookOrder
from strands.injection import InjectionContext
from strands.memory import (
    InjectionFormatContext,
    InjectionQueryContext,
    MemoryEntry,
    MemoryInjectionConfig,
    MemorySearchOptions,
    MemoryStore,
    SearchOptions,
)
from strands.memory import MemoryManager as Parent
from strands.middleware import InvokeModelStage
from strands.tools.decorator import tool

from strands_gated_memory import GatedMemoryManager, memory_manager
from strands_gated_memory.testing import ScriptedModel
from strands_gated_memory.testing.model import ToolCall

OVERRIDDEN = {"__init__", "init_agent", "tools"}
"""What the manager overrides. `__module__` and the like aside, anything else would be by accident."""


class Store:
    description = "facts about the user"
    max_search_results = None
    writable = False
    extraction = None

    def __init__(self, name="facts"):
        self.name = name
        self.searched = []

    async def search(self, query, options=None):
        self.searched.append((query, options, asyncio.get_running_loop()))
        return [MemoryEntry("Likes tea")]


def talking(manager=None, *replies, **settings):
    model = ScriptedModel(replies or itertools.repeat("Fine."))
    return Agent(model=model, memory_manager=manager, callback_handler=None, **settings)


# The parent's class


def test_the_constructor_takes_the_same_arguments():
    """Ours passes on or reads each of them; a new one of the parent's would be refused."""
    theirs = list(inspect.signature(Parent).parameters)

    assert theirs == ["stores", "search_tool_config", "add_tool_config", "injection"]
    assert list(inspect.signature(GatedMemoryManager).parameters)[:4] == theirs


def test_an_injections_settings_are_those_that_are_read():
    """A new one would be accepted and do nothing."""
    assert set(typing.get_type_hints(MemoryInjectionConfig)) == {"trigger", "max_entries", "query", "format"}


def test_the_contexts_of_an_injections_functions_hold_what_is_given():
    assert [field.name for field in fields(InjectionContext)] == ["messages", "state", "agent"]
    assert [field.name for field in fields(InjectionQueryContext)] == ["messages"]
    assert [field.name for field in fields(InjectionFormatContext)] == ["entries"]


def test_nothing_of_the_parents_is_overridden_by_accident():
    """A method or property that the parent gains under a name of ours."""
    written = {
        name
        for name, value in vars(GatedMemoryManager).items()
        if (inspect.isfunction(value) or isinstance(value, property)) and name != "__subclasshook__"
    }

    assert {name for name in written if hasattr(Parent, name)} == OVERRIDDEN


def test_no_attribute_of_ours_is_one_of_the_parents():
    """What our constructor and methods assign to self, against what an instance of the parent holds."""
    tree = ast.parse(Path(memory_manager.__file__).read_text(encoding="utf-8"))
    (manager,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "GatedMemoryManager")
    stored = (n for n in ast.walk(manager) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    ours = {n.attr for n in stored if isinstance(n.value, ast.Name) and n.value.id == "self"}

    assert ours
    assert ours & set(dir(Parent([Store()]))) == set()


def test_nothing_private_of_the_parents_is_read():
    """Public seams only: of `super()` and of what we do not assign ourselves."""
    tree = ast.parse(Path(memory_manager.__file__).read_text(encoding="utf-8"))
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    theirs = {name for name in dir(Parent([Store()])) if name.startswith("_") and not name.startswith("__")}

    assert used & theirs == set()


def test_an_agent_takes_a_subclass_and_initialises_it_with_itself():
    """Before its first turn; the coroutine is awaited."""

    class Noted(Parent):
        agent = None

        async def init_agent(self, agent):
            await super().init_agent(agent)
            self.agent = agent

    manager = Noted([Store()])
    agent = talking(manager)

    assert manager.agent is agent
    assert agent.memory_manager is manager


def test_without_injection_the_parent_adds_nothing_to_a_call():
    store = Store()
    agent = talking(Parent([store], injection=False))
    agent("Hello")

    assert agent.model.calls[0][0]["content"] == [{"text": "Hello"}]
    assert store.searched == []


def test_the_tools_of_an_agent_are_the_managers_tools():
    @tool
    def extra() -> str:
        """Do something else."""
        return "done"

    class More(Parent):
        @property
        def tools(self):
            return [extra, *super().tools]

    assert sorted(talking(More([Store()])).tool_names) == ["extra", "search_memory"]


def test_the_search_tool_searches_through_the_managers_search():
    """With the names of stores; it reads name, description, `writable` and `extraction` of a store, nothing else."""

    class Noted(Parent):
        searched = ()

        async def search(self, query, options=None):
            self.searched = (*self.searched, (query, options))
            return [MemoryEntry("Likes tea", "facts", {"id": "1"})]

    named = SimpleNamespace(name="facts", description="facts", writable=False, extraction=None)
    manager = Noted([named], injection=False)
    agent = talking(manager, ToolCall("search_memory", {"query": "tea", "max_search_results": 2}), "Done.")
    agent("Hello")

    assert manager.searched == (("tea", {"stores": ["facts"], "max_search_results": 2}),)
    assert "Likes tea" in str(agent.model.calls[-1][-1])


# Stores


def test_a_store_has_the_attributes_that_are_read():
    assert {"name", "description", "max_search_results"} <= set(MemoryStore.__annotations__)
    assert list(inspect.signature(MemoryStore.search).parameters) == ["self", "query", "options"]
    assert inspect.iscoroutinefunction(MemoryStore.search)
    assert set(SearchOptions.__annotations__) == {"max_search_results"}
    assert "stores" in MemorySearchOptions.__annotations__


def test_an_entry_is_text_store_and_metadata_in_this_order():
    assert [field.name for field in fields(MemoryEntry)] == ["content", "store_name", "metadata"]


def test_the_parent_searches_on_the_agents_own_loop():
    """So do we: a store's client may be bound to it."""
    store, loops = Store(), []
    agent = talking(Parent([store]))
    agent.add_hook(lambda _: loops.append(asyncio.get_running_loop()), BeforeModelCallEvent)

    agent("Hello")

    assert store.searched[0][2] is loops[0]


def test_an_entry_of_agentcores_store_has_these_names():
    entry = AgentCoreMemoryStore._to_entry(
        {"memoryRecordId": "r1", "content": {"text": "Likes tea"}, "score": 0.5, "createdAt": 0, "namespaces": ["/f/"]}
    )

    assert set(entry.metadata) == {"_id", "_score", "_createdAt", "_namespaces"}


# The order of a turn


def test_a_hook_before_a_model_call_is_awaited_before_the_stage_that_shows_the_block():
    """The ask is in the conversation then; every model call has one, and one more for each."""
    heard = []

    async def before(event):
        await asyncio.sleep(0)
        heard.append(f"hook {event.agent.messages[0]['content'][0]['text']}")

    def stage(context):
        heard.append("stage")
        return context

    @tool
    def clock() -> str:
        """Tell the time."""
        return "noon"

    agent = talking(None, ToolCall("clock", {}), "Fine.", tools=[clock])
    agent.add_middleware(InvokeModelStage.Input, stage)
    agent.add_hook(before, BeforeModelCallEvent, order=HookOrder.SDK_LAST)
    agent("Hello")

    assert heard == ["hook Hello", "stage"] * 2


def test_an_exception_in_that_hook_ends_the_turn():
    """Why a recall must not raise, and why `on_failure="raise"` can."""
    agent = talking()

    async def fail(_event):
        raise LookupError("in a hook")

    agent.add_hook(fail, BeforeModelCallEvent)

    with pytest.raises(LookupError, match="in a hook"):
        agent("Hello")


def test_an_invocation_tells_its_input_and_its_state_and_ends_once():
    heard = []
    agent = talking()
    agent.add_hook(lambda e: heard.append((e.messages[0]["role"], e.invocation_state["recall"])), BeforeInvocationEvent)
    agent.add_hook(lambda e: heard.append(e.result.stop_reason), AfterInvocationEvent)

    agent("Hello", invocation_state={"recall": False})

    assert heard == [("user", False), "end_turn"]
