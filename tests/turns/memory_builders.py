"""The two doors to a recall, and three kinds of store behind the second: the same turns are run through each."""

import asyncio
import itertools
import json
from typing import ClassVar

from bedrock_agentcore.memory.client import MemoryClient
from bedrock_agentcore.memory.integrations.strands.memorystore import AgentCoreMemoryStore
from strands import Agent
from strands.memory import MemoryEntry
from strands.vended_memory_stores import TestMemoryStore
from turn_builders import FACTS, PREFERENCES

from strands_gated_memory import GatedMemoryManager, RecallPolicy
from strands_gated_memory.testing.model import ScriptedModel

DESCRIPTIONS = {"facts": "facts about the user", "preferences": "what the user likes"}


class ListStore:
    """A store over a list, in memory of this test: it may fail, and wait for an event of the agent's own loop."""

    max_search_results = None
    writable = False
    extraction = None

    def __init__(self, name, *texts, description=None, entries=(), error=None):
        self.name = name
        self.description = description
        self.entries = [*map(MemoryEntry, texts), *entries]
        self.error = error
        self.hangs = False
        self.searched = []
        """Query and limit of each search."""

    async def search(self, query, options=None):
        self.searched.append((query, (options or {}).get("max_search_results")))
        await asyncio.sleep(0)
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return self.entries


class Watched:
    """A store that notes what another one is searched for."""

    writable = False

    def __init__(self, store):
        self._store = store
        self.searched = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def search(self, query, options=None):
        self.searched.append(query)
        return await self._store.search(query, options)


def remembering(*stores, replies=(), manager=None, agent=None, **settings):
    """Return an agent over a memory manager; `settings` are the manager's, `agent` the agent's, `policy` a mapping."""
    if isinstance(settings.get("policy"), dict):
        settings["policy"] = RecallPolicy(**settings["policy"])
    manager = manager or GatedMemoryManager(list(stores), **{"decider": None, **settings})
    model = ScriptedModel(replies or itertools.repeat("Fine."))
    return Agent(**{"model": model, "memory_manager": manager, "callback_handler": None, **(agent or {})})


class Door:
    """One way of recalling, filled and asked in the words of all of them; namespaces are "facts" and "preferences"."""

    names: ClassVar = {"facts": "facts", "preferences": "preferences"}
    """What the door calls each namespace."""

    def __init__(self, bench, tmp_path):
        self.bench = bench
        self.folder = tmp_path
        self.setup()

    def setup(self):
        """Make the stores, before anything is remembered."""

    def manager(self, names, settings):
        described = {self.names[name]: DESCRIPTIONS[name] for name in names}
        policy = settings.pop("policy", None) or {}
        policy = {**policy, "router": {"descriptions": described, **policy.get("router", {})}}
        return self.managing(names, policy=RecallPolicy(**policy), **{"decider": None, **settings})

    def managing(self, names, **settings):
        stores = [Watched(self.store(name)) for name in names]
        self._watched = stores
        return GatedMemoryManager(stores, **settings)

    def agent(self, *replies, names=("facts",), tools=(), **settings):
        self.recalling = self.manager(names, settings)
        model = ScriptedModel(replies or itertools.repeat("Fine."))
        role = {"memory_manager": self.recalling}
        return Agent(model=model, callback_handler=None, tools=list(tools), **role)

    def searches(self):
        """Return each search so far: namespace and query."""
        return [(store.name, query) for store in self._watched for query in store.searched]


class SessionDoor(Door):
    """The session manager, on an emulated AgentCore Memory."""

    names: ClassVar = {"facts": FACTS, "preferences": PREFERENCES}
    refused = "throttled"

    def remember(self, name, *texts):
        self.bench.remember(*texts, namespace=self.names[name])

    def break_namespace(self, name):
        self.bench.core.fail("RetrieveMemoryRecords", "ThrottledException", namespace=f"/{name}/{self.bench.actor}/")

    def agent(self, *replies, names=("facts",), tools=(), **settings):
        policy = settings.pop("policy", None) or {}
        described = {self.names[name]: DESCRIPTIONS[name] for name in names}
        policy = {**policy, "router": {"descriptions": described, **policy.get("router", {})}}
        tracing = {name: settings.pop(name) for name in ("trace_path", "trace_content") if name in settings}
        self.recalling = self.bench.manager(
            namespaces=[self.names[name] for name in names], policy=policy, tracing=tracing, **settings
        )
        return self.bench.agent(self.recalling, *replies, tools=list(tools))

    def searches(self):
        return [(f"/{call.namespace_path.split('/')[1]}/{{actorId}}/", call.query) for call in self.bench.searches()]


class AgentCoreDoor(Door):
    """AgentCore's own memory store, on the same emulation."""

    refused = "throttled"

    def setup(self):
        self.client = MemoryClient(region_name="us-east-1", boto3_session=self.bench.session)
        self.client.gmdp_client = self.bench.client  # with one attempt: what fails here fails for good

    def remember(self, name, *texts):
        self.bench.remember(*texts, namespace=f"/{name}/{{actorId}}/")

    def store(self, name):
        return AgentCoreMemoryStore(
            memory_id=self.bench.core.memory_id,
            actor_id=self.bench.actor,
            session_id="session-1",
            namespace=f"/{name}/{{actorId}}/",
            name=name,
            client=self.client,
        )

    def break_namespace(self, name):
        self.bench.core.fail("RetrieveMemoryRecords", "ThrottledException", namespace=f"/{name}/{self.bench.actor}/")


class InMemoryDoor(Door):
    """A store that ships with Strands."""

    refused = "ValueError"

    def setup(self):
        self.stores = {
            name: TestMemoryStore(name=name, path=str(self.folder / f"{name}.json")) for name in DESCRIPTIONS
        }

    def remember(self, name, *texts):
        async def add():
            for text in texts:
                await self.stores[name].add(text)

        asyncio.run(add())

    def store(self, name):
        return self.stores[name]

    def break_namespace(self, name):
        (self.folder / f"{name}.json").write_text(json.dumps({"no": "list"}), encoding="utf-8")


class OwnDoor(Door):
    """A store of ours, which fails and hangs on request."""

    refused = "ConnectionResetError"

    def setup(self):
        self.stores = {name: ListStore(name) for name in DESCRIPTIONS}

    def remember(self, name, *texts):
        self.stores[name].entries += map(MemoryEntry, texts)

    def store(self, name):
        return self.stores[name]

    def break_namespace(self, name):
        self.stores[name].error = ConnectionResetError("the store is gone")


DOORS = {"session manager": SessionDoor, "agentcore": AgentCoreDoor, "strands": InMemoryDoor, "own": OwnDoor}
