"""docs/memory-manager.md and the examples of the native path say what is so."""

import asyncio
import importlib.util
import inspect
import itertools
import re
from pathlib import Path

import boto3
import pytest
from bedrock_agentcore.memory.client import MemoryClient
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.memorystore import create_agentcore_memory_stores
from strands import Agent

from strands_gated_memory import GatedMemoryManager, GatedMemorySessionManager
from strands_gated_memory.retrieval import stores
from strands_gated_memory.testing import HashingEncoder, ScriptedModel, local_agentcore

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "memory-manager.md").read_text(encoding="utf-8")


def section(title):
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_seam_that_is_named_has_its_test_and_the_other_way_round():
    source = (Path(__file__).parent / "test_memory_manager_seams.py").read_text(encoding="utf-8")

    assert set(re.findall(r"`(test_\w+)`", section("The seams that it relies on"))) == set(
        re.findall(r"^def (test_\w+)", source, re.MULTILINE)
    )


def test_every_argument_is_described():
    described = set(re.findall(r"`(\w+)`", section("Arguments")))

    assert set(inspect.signature(GatedMemoryManager).parameters) <= described


def test_the_names_in_entries_are_those_that_are_looked_for():
    rows = dict(re.findall(r"^\| (score|id|time of writing) \| (.*) \|$", section("Stores"), re.MULTILINE))

    assert {name: tuple(re.findall(r"`(\w+)`", cell)) for name, cell in rows.items()} == {
        "score": stores._SCORES,
        "id": stores._IDS,
        "time of writing": stores._TIMES,
    }


def test_the_events_of_ten_turns_are_those_that_are_measured():
    namespaces = ("/facts/{actorId}/", "/preferences/{actorId}/")

    def counted(talk):
        with local_agentcore(encoder=HashingEncoder()) as core:
            session = boto3.Session(region_name="us-east-1")
            talk(core, session)
            return len(core.calls.of("CreateEvent"))

    def agent(**role):
        return Agent(model=ScriptedModel(itertools.repeat("Fine.")), callback_handler=None, **role)

    def over_stores(core, session):
        client = MemoryClient(region_name="us-east-1", boto3_session=session)
        made = create_agentcore_memory_stores(
            memory_id=core.memory_id,
            actor_id="user",
            session_id="session",
            namespaces=[{"namespace": name} for name in namespaces],
            extraction=True,
            client=client,
        )
        return agent(memory_manager=GatedMemoryManager(made, decider=None))

    def with_session_manager(core, session):
        config = AgentCoreMemoryConfig(
            memory_id=core.memory_id,
            actor_id="user",
            session_id="session",
            retrieval_config={name: RetrievalConfig() for name in namespaces},
        )
        talking = agent(session_manager=GatedMemorySessionManager(config, boto_session=session, decider=None))
        for number in range(10):
            talking(f"hello {number}")

    def called(core, session):
        talking = over_stores(core, session)
        for number in range(10):
            talking(f"hello {number}")

    def in_a_loop(core, session):
        async def talk():
            talking = over_stores(core, session)
            for number in range(10):
                await talking.invoke_async(f"hello {number}")
            await talking.shutdown_async()

        asyncio.run(talk())

    (row,) = re.findall(r"^\| events for 10 turns .*?\| (.*) \|$", TEXT, re.MULTILINE)
    ours, theirs = row.split(" | ")
    documented = [int(ours), *map(int, re.findall(r"(\d+) (?:with|in)", theirs))]

    assert documented == [counted(with_session_manager), counted(called), counted(in_a_loop)]


@pytest.mark.parametrize("path", re.findall(r"\]\(\.\./(examples/\w+\.py)\)", TEXT))
def test_an_example_that_is_named_runs_and_recalls(path, capsys):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    module.main()

    shown = capsys.readouterr().out
    assert "> Hello!" in shown
    assert "(no memory was needed)" in shown
    assert "vegetarian food" in shown.lower()
    assert re.search(r"^gate decisions +2  \(open 1, closed 1, failed 0\)$", shown, re.MULTILINE)
