"""The first turns of a process: a model that is being loaded is waited for, and is not failing."""

import functools
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import strands
from turn_builders import AS_SHIPPED, broken, last_block, yes

import strands_gated_memory
from strands_gated_memory import ConfigurationError, GatedMemoryError, Noul, RecallPipeline, RecallStats, Turn, warm
from strands_gated_memory.testing.model import ScriptedModel

PATIENCE_S = 30
"""How long anything here may take before it counts as hanging."""
OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


class Cold:
    """A model in this process that must be loaded, and whose every question waits for that."""

    def __init__(self):
        self.begun, self.release, self.loaded = threading.Event(), threading.Event(), threading.Event()
        self.warmed_in = []
        self.asked = 0

    def warm(self):
        self.warmed_in.append(threading.current_thread())
        self.begun.set()
        assert self.release.wait(PATIENCE_S)
        self.loaded.set()

    def decide(self, state, questions):
        self.asked += 1
        if not self.loaded.is_set():
            self.warm()
        return {name: Noul(0.9) for name in questions}


@pytest.fixture
def cold():
    decider = Cold()
    yield decider
    decider.release.set()


def turns_at_once(bench, manager_of, count):
    agents = [bench.agent(manager_of(number)) for number in range(count)]
    together = threading.Barrier(count)

    def turn(agent):
        together.wait(PATIENCE_S)
        agent("What do I drink?")
        return agent

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(turn, agents))


@pytest.mark.parametrize("in_a_list", [False, True], ids=["alone", "in a list"])
def test_turns_that_cannot_wait_for_the_model_are_undecided_and_nothing_has_failed(bench, cold, caplog, in_a_list):
    """Sixteen at once: each is shown its memory, no breaker opens, and once the model is there it is asked."""
    bench.remember("Likes tea")
    decider, stats = [cold] if in_a_list else cold, RecallStats()
    soon = {"deadline_s": 12.0, "retrieve": {"timeout_s": 6.0}}
    agents = turns_at_once(
        bench, lambda number: bench.manager(decider=decider, stats=stats, policy=soon, session_id=f"s{number}"), 16
    )

    counts = stats.as_dict()
    assert counts["gate"]["warming"] == 16
    assert (counts["decider_errors"], counts["retrieval_errors"], counts["error_rate"]) == (0, 0, 0.0)
    assert counts["decider_warming"] > 0
    assert set(counts["breakers"].values()) == {"closed"}
    assert [last_block(agent) for agent in agents] == [["Likes tea"]] * 16
    assert "decider warming" in str(stats)
    assert caplog.text.count("stage=<gate> | the decision model is still being loaded") == 1
    assert len(cold.warmed_in) == 1

    cold.release.set()
    assert cold.loaded.wait(PATIENCE_S)
    agents[0]("What do I drink?")
    assert stats.as_dict()["gate"]["open"] == 1


def test_a_turn_waits_for_a_model_that_is_about_to_be_there(bench, cold):
    """The model is loaded while the turn waits, and decides it."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=cold, policy={"deadline_s": 60.0})
    threading.Thread(target=lambda: cold.begun.wait(PATIENCE_S) and cold.release.set(), daemon=True).start()
    bench.agent(manager)("What do I drink?")

    assert manager.last_recall.trace.gate.outcome == "open"


def test_a_pipeline_of_its_own_begins_to_load_the_model_too(cold):
    recall = RecallPipeline(cold).recall(Turn("What do I drink?"), ["/facts/"], lambda namespace: [])

    assert recall.trace.gate.outcome == "warming"
    assert cold.begun.is_set()
    assert cold.asked == 0


def test_strict_mode_does_not_raise_for_a_model_that_is_being_loaded(bench, cold):
    manager = bench.manager(decider=cold, policy={"on_failure": "raise"}, waits=AS_SHIPPED)
    bench.agent(manager)("What do I drink?")

    assert manager.last_recall.trace.gate.outcome == "warming"


def test_a_list_asks_the_next_decider_while_the_first_is_being_loaded(bench, cold):
    manager = bench.manager(decider=[cold, yes], policy={"deadline_s": 8.0})
    bench.agent(manager)("What do I drink?")

    counts = manager.stats.as_dict()
    assert counts["decider_passed_over"] == {"Cold: warming": 1}
    assert counts["gate"]["open"] == 1
    assert set(counts["breakers"].values()) == {"closed"}


def test_a_model_that_cannot_be_loaded_is_a_failure(bench):
    class Damaged:
        def warm(self):
            raise OSError("the file is damaged")

        def decide(self, state, questions):
            self.warm()

    manager = bench.manager(decider=Damaged())
    bench.agent(manager)("What do I drink?")

    assert manager.stats.as_dict()["decider_errors_by_kind"] == {"OSError": 1}
    with pytest.raises(GatedMemoryError, match=r"Damaged cannot be loaded \(OSError: the file is damaged\)"):
        manager.warm()
    with pytest.raises(GatedMemoryError, match="no decider of the list can be loaded"):
        warm([Damaged(), Damaged()])


@pytest.mark.parametrize("way", ["manager", "function", "list"])
def test_the_model_is_loaded_once_when_warm_returns(bench, cold, way):
    """A manager begins to load it in the background, which `warm` then waits for."""
    cold.release.set()
    if way == "manager":
        bench.manager(decider=cold).warm()
    else:
        warm([broken, cold] if way == "list" else cold)
        assert cold.warmed_in == [threading.current_thread()]

    assert cold.loaded.is_set()
    assert len(cold.warmed_in) == 1


def test_warm_logs_the_member_of_a_list_that_cannot_be_loaded(cold, caplog):
    class Damaged(Cold):
        def warm(self):
            raise OSError("the file is damaged")

    cold.release.set()
    warm([Damaged(), cold])

    assert "cause=<Damaged: OSError: the file is damaged>" in caplog.text
    assert cold.loaded.is_set()


@pytest.mark.parametrize("spec", [None, yes, "embedded", ["embedded", yes]], ids=["none", "function", "name", "list"])
def test_warm_takes_what_a_manager_takes(spec):
    warm(spec)


def test_warm_refuses_what_a_manager_refuses():
    with pytest.raises(ConfigurationError, match="did you mean 'embedded'"):
        warm("embeded")


def examples():
    """Return the programs of the section on cold starts, by their first line."""
    section = OPERATIONS.read_text(encoding="utf-8").split("\n## Cold starts\n")[1].split("\n## ")[0]
    return {code.splitlines()[0]: code for code in re.findall(r"```python\n(.*?)```", section, re.DOTALL)}


@pytest.mark.parametrize("first_line", examples())
def test_the_examples_of_the_operations_page_run(bench, monkeypatch, first_line):
    """Loaded before the first request, which is decided."""
    bench.remember("Likes tea")
    monkeypatch.setenv("MEMORY_ID", bench.core.memory_id)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    model = ScriptedModel(lambda _: "Fine.")
    monkeypatch.setattr(strands, "Agent", functools.partial(strands.Agent, model=model, callback_handler=None))
    warmed = []
    real = strands_gated_memory.warm
    monkeypatch.setattr(strands_gated_memory, "warm", lambda *given: (warmed.append(given), real(*given)))
    program = {}
    exec(examples()[first_line], program)

    assert len(warmed) == 1
    event = {"user": bench.actor, "conversation": "s1", "prompt": "What should I drink?"}
    reply = program["handler"](event, None) if "handler" in program else program["handle"](**event)

    assert "Fine." in reply
    counts = program["STATS"].as_dict()
    assert (counts["turns"], counts["decider_errors"], counts["gate"]["warming"]) == (1, 0, 0)


def test_threads_that_warm_one_model_load_it_once(bench, cold):
    """A second copy of a model that is being loaded may not fit into the memory of the machine."""
    manager = bench.manager(decider=cold)
    assert cold.begun.wait(PATIENCE_S)
    ways = [manager.warm, functools.partial(warm, cold), functools.partial(warm, [cold])]
    waits = [threading.Thread(target=way, daemon=True) for way in ways]
    for thread in waits:
        thread.start()

    cold.release.set()
    for thread in waits:
        thread.join(PATIENCE_S)

    assert cold.loaded.is_set()
    assert len(cold.warmed_in) == 1


def test_warm_tries_again_what_another_thread_could_not_load(bench):
    """And says why, where that fails too."""
    begun, release = threading.Event(), threading.Event()

    class Missing:
        tries = 0

        def warm(self):
            self.tries += 1
            begun.set()
            assert release.wait(PATIENCE_S)
            raise OSError("no such file")

        def decide(self, state, questions):
            return {name: Noul(0.9) for name in questions}

    missing = Missing()
    manager = bench.manager(decider=missing)
    assert begun.wait(PATIENCE_S)
    release.set()

    with pytest.raises(GatedMemoryError, match="no such file"):
        manager.warm()
    assert missing.tries == 2
