"""A real agent over the real session manager, its searches and its decision model each behind a fault proxy.

What the parent writes goes to moto's threaded server by the endpoint environment variable; the searches, which
have a client of their own, go there through the proxy.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from unittest.mock import patch

import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from fault_cases import CASES, Case
from fault_proxy import FaultProxy, Request, answering, proxying
from strands import Agent

from strands_gated_memory import GatedMemorySessionManager, RecallPolicy
from strands_gated_memory.testing import HashingEncoder, ScriptedModel, blocks_shown, local_agentcore, seed_records

Stage = Literal["gate", "retrieve", "judge"]
STAGES: tuple[Stage, ...] = ("gate", "retrieve", "judge")
PATIENT = {"deadline_s": 60.0, "retrieve": {"timeout_s": 30.0}}
"""Of turns in which nothing hangs: whatever else the machine does, they are over by then."""
HURRIED = {"deadline_s": 4.0, "retrieve": {"timeout_s": 2.0}}
"""Of turns that have to give up something that hangs, and have time for the rest."""
MATRIX: dict[tuple[str, Stage], str] = {}
"""What the turn of each fault and stage came to, for the summary."""
CUTS = {name: {"threshold": 0.3} for name in ("gate", "router", "validator")}
POLICY = RecallPolicy(**CUTS, **PATIENT)
ASK = "What do I drink on the way?"

FACTS, PREFERENCES, EPISODES = "/facts/{actorId}/", "/preferences/{actorId}/", "/episodes/{actorId}/"
TEA, BIKE, WINDOW, LUGGAGE = "Drinks tea", "Owns a bike", "Sits at the window", "Lost the luggage in Bristol"
RECORDS = {FACTS: (TEA, BIKE), PREFERENCES: (WINDOW,), EPISODES: (LUGGAGE,)}

HEALTHY = [TEA, WINDOW]
"""What is injected when nothing fails: the bike is judged out, the episodes are not searched."""
FAIL_OPEN: dict[Stage, list[str]] = {
    "gate": [TEA, WINDOW, LUGGAGE],  # no gate and no router: everything is searched, and judged
    "retrieve": [WINDOW],  # the facts are missing
    "judge": [TEA, BIKE, WINDOW],  # everything that was found is kept, in the order of configuration and search
}
EVERYTHING = [TEA, BIKE, WINDOW, LUGGAGE]
"""Without a decision model."""


def decide(document: Any) -> Any:
    """Answer a System One request: the gate opens, the episodes are not needed, the bike has no bearing."""

    def probability(name: str, question: Any) -> float:
        text = question["instructions"]
        if name == "gate":
            return 0.9
        if name.startswith("namespace"):
            return 0.05 if "episodes" in text else 0.9
        return next((p for word, p in {"tea": 0.9, "window": 0.8, "luggage": 0.7}.items() if word in text), 0.02)

    answers = {name: {"type": "noul", "noul": probability(name, q)} for name, q in document["questions"].items()}
    return {"model": "loopback-1", "answers": answers, "usage": {"input_tokens": 10, "output_tokens": len(answers)}}


class _SearchesThroughProxy(boto3.Session):
    """Gives the client that searches another address than the parent's client, which writes."""

    search_url = ""

    def client(self, *names: Any, config: Any = None, **settings: Any) -> Any:
        if "strands-gated-memory" in (getattr(config, "user_agent_extra", None) or ""):
            settings["endpoint_url"] = self.search_url
        return super().client(*names, config=config, **settings)


@dataclass(frozen=True)
class AgentCore:
    """The emulated memory and where it listens."""

    memory_id: str
    url: str
    session: _SearchesThroughProxy
    """One for all tests: it keeps what it has read about the service."""


@contextmanager
def serving_agentcore() -> Iterator[AgentCore]:
    """Serve AgentCore Memory over HTTP, with the records of one actor, "u", in it."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with local_agentcore(encoder=HashingEncoder()) as core, ExitStack() as undo:
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        undo.callback(server.stop)
        url = "http://{}:{}".format(*server.get_host_and_port())
        environment = {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false", "AWS_ENDPOINT_URL_BEDROCK_AGENTCORE": url}
        undo.enter_context(patch.dict(os.environ, environment))
        records = [{"text": text, "namespace": name} for name, texts in RECORDS.items() for text in texts]
        writer = boto3.Session(region_name="us-east-1").client("bedrock-agentcore")
        seed_records(writer, core.memory_id, records, actor_id="u")
        memory = AgentCore(core.memory_id, url, _SearchesThroughProxy(region_name="us-east-1"))
        with World(memory) as world:  # what the first turn loads would count against the first test's deadline
            world.agent(world.manager())(ASK)
        yield memory


class World:
    """Proxies, and managers and agents behind them. A context manager."""

    def __init__(self, agentcore: AgentCore) -> None:
        self.agentcore = agentcore
        self._undo = ExitStack()
        self._sessions = itertools.count(1)
        self._dns_fails_for: Stage | None = None

    def __enter__(self) -> World:
        self._start()
        self._resolve = socket.getaddrinfo
        self._undo.enter_context(patch("socket.getaddrinfo", self._looked_up))
        return self

    def __exit__(self, *error: object) -> None:
        self._undo.close()

    def _start(self) -> None:
        upstream = self._undo.enter_context(answering(decide))
        self.decider: FaultProxy = self._undo.enter_context(proxying(upstream))
        self.searches: FaultProxy = self._undo.enter_context(proxying(self.agentcore.url))
        self.agentcore.session.search_url = f"http://memory.test:{self.searches.port}"

    def manager(self, **settings: Any) -> GatedMemorySessionManager:
        """Return a manager whose decision model and searches go through the proxies."""
        settings = {"policy": POLICY, "decider_check": "off", **settings}
        config = AgentCoreMemoryConfig(
            memory_id=self.agentcore.memory_id,
            actor_id="u",
            session_id=f"session-{next(self._sessions)}",
            retrieval_config={name: RetrievalConfig(top_k=10) for name in RECORDS},
        )
        url = f"http://decider.test:{self.decider.port}"
        return GatedMemorySessionManager(config, boto_session=self.agentcore.session, decider=url, **settings)

    def agent(self, manager: GatedMemorySessionManager) -> Agent:
        """Return an agent that says "Fine." for ever."""
        return Agent(model=ScriptedModel(itertools.repeat("Fine.")), session_manager=manager, callback_handler=None)

    def spoil(self, case: Case, stage: Stage) -> None:
        """Let one stage fail in one way."""
        if case is CASES["DNS failure"]:
            self._dns_fails_for = stage
        elif stage == "retrieve":
            self.searches.inject(case.play, lambda request: case.whole or "/facts/" in _path_of(request))
        else:
            self.decider.inject(case.play, lambda request: stage_of(request) == stage)

    def heal(self) -> None:
        """Let nothing fail any more."""
        self._dns_fails_for = None
        self.searches.inject(None)
        self.decider.inject(None)

    def _looked_up(self, host: Any, *arguments: Any, **settings: Any) -> Any:
        names = {"decider.test", "memory.test"}
        if host not in names:
            return self._resolve(host, *arguments, **settings)
        # A recall asks the gate before the first search and judges after it.
        failing: Stage = "retrieve" if host == "memory.test" else "judge" if self.searches.requests else "gate"
        if failing == self._dns_fails_for:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._resolve("127.0.0.1", *arguments, **settings)


def expected(case: Case, stage: Stage) -> list[str]:
    """Return what fail-open shows when a stage fails."""
    if case.whole and stage == "retrieve":
        return []
    if case.lasting and stage == "gate":
        return EVERYTHING
    return FAIL_OPEN[stage]


def failures(case: Case, stage: Stage) -> int:
    """Return how many failures that is: two where both searches, or both requests to the model, fail."""
    return 2 if (case.whole and stage == "retrieve") or (case.lasting and stage == "gate") else 1


def shown(agent: Agent) -> list[str]:
    """Return the lines of the block that the last model call was shown; [] if there was none."""
    blocks = blocks_shown(agent.model.calls[-1])  # type: ignore[attr-defined]
    assert len(blocks) <= 1
    return blocks[0].splitlines()[1:-1] if blocks else []


def stage_of(request: Request) -> Stage | None:
    """Tell which decision a request asks for; None for a look at the server's health."""
    if request.document is None:
        return None
    return "gate" if "gate" in request.document["questions"] else "judge"


def _path_of(request: Request) -> str:
    return str((request.document or {}).get("namespacePath"))
