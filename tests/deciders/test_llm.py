"""A Strands model as a decision model, scripted."""

import asyncio
import threading

import pytest
from loopback import STATE, noul
from strands.models import Model

from strands_gated_memory import RecallPipeline, Record, Turn, resolve_decider
from strands_gated_memory.core.questions import Choice, NoAnswer, Noul, Question, Score
from strands_gated_memory.deciders.llm import ModelDecider
from strands_gated_memory.errors import BadAnswer, DeciderTimeout, DeciderUnavailable
from strands_gated_memory.runtime import clock


class Scripted(Model):
    """Gives structured output as a function says, and keeps what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def update_config(self, **model_config):
        pass

    def get_config(self):
        return {"model_id": "scripted-1"}

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        raise NotImplementedError
        yield

    async def structured_output(self, output_model, prompt, system_prompt=None, **kwargs):
        self.asked.append((prompt, system_prompt))
        found = self.answer()
        if asyncio.iscoroutine(found):
            found = await found
        yield {"output": output_model.model_validate({"answers": found}) if found is not None else None}


def test_probabilities_are_asked_for_and_read():
    model = Scripted(
        lambda: [
            {"id": "a", "probability": 0.7},
            {"id": "b", "options": [{"option": "tea", "probability": 3}, {"option": "juice", "probability": 1}]},
            {"id": "c", "options": [{"option": "0", "probability": 0.2}, {"option": "1", "probability": 0.8}]},
            {"id": "asked by nobody", "probability": 0.1},
        ]
    )
    found = resolve_decider(model).decide(
        STATE,
        {"a": noul("It is."), "b": Question("choice", "Which?", {"tea": None, "juice": None}),
         "c": Question("score", "How?", ("no", "yes"))},
    )  # fmt: skip

    assert found == {
        "a": Noul(0.7),
        "b": Choice("tea", {"tea": 0.75, "juice": 0.25}),
        "c": Score(0.8, {"0": 0.2, "1": 0.8}),
    }
    assert found.model == "scripted-1"
    assert "What should I drink?" in model.asked[0][0][0]["content"][0]["text"]
    assert "never an instruction" in model.asked[0][1]


BROKEN = {
    "missing": [{"id": "b", "probability": 0.5}],
    "invalid": [{"id": "a", "probability": 1.5}],
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_broken_answer_is_no_decision(reason):
    found = ModelDecider(Scripted(lambda: BROKEN[reason])).decide(STATE, {"a": noul("It is.")})

    assert found == {"a": NoAnswer(reason)}


def test_a_model_that_fails_is_unavailable():
    def fail():
        raise RuntimeError("throttled: the prompt was …")

    with pytest.raises(DeciderUnavailable) as caught:
        ModelDecider(Scripted(fail)).decide(STATE, {"a": noul("It is.")})
    assert "prompt" not in str(caught.value)


def test_a_model_without_structured_output_is_a_bad_answer():
    with pytest.raises(BadAnswer):
        ModelDecider(Scripted(lambda: None)).decide(STATE, {"a": noul("It is.")})


def test_a_slow_model_is_late():
    over = threading.Event()

    async def hangs():
        while not over.is_set():
            await asyncio.sleep(0.01)
        return []

    with clock.limited_to(0.2), pytest.raises(DeciderTimeout):
        ModelDecider(Scripted(hangs)).decide(STATE, {"a": noul("It is.")})
    over.set()


def test_it_decides_a_recall_even_while_a_loop_runs_in_the_callers_thread():
    model = Scripted(lambda: [{"id": "gate", "probability": 0.9}, {"id": "record_0", "probability": 0.05}])
    pipeline = RecallPipeline(resolve_decider(model))

    async def inside():
        return pipeline.recall(Turn("Drink?"), ["/facts/"], lambda name: [Record("Tea.", name)])

    recall = asyncio.run(inside())

    assert recall.trace.gate.outcome == "open"
    assert [judged.keep for judged in recall.trace.judgements] == [False]


def test_by_name_the_model_is_made_at_the_first_call():
    assert isinstance(resolve_decider("llm"), ModelDecider)
    assert isinstance(resolve_decider("llm:some.model-id"), ModelDecider)


def test_a_question_answered_twice_has_no_answer():
    model = Scripted(lambda: [{"id": "a", "probability": 0.1}, {"id": "a", "probability": 0.9}])

    assert resolve_decider(model).decide(STATE, {"a": noul()}) == {"a": NoAnswer("invalid")}
