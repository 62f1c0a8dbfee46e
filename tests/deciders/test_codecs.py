"""Wire formats: what is sent, and what a response of the recorded shape means."""

import pytest
from loopback import STATE

from strands_gated_memory.core.questions import Choice, NoAnswer, Noul, Question, Score
from strands_gated_memory.deciders.codecs.openai_decisions import OpenAIDecisions
from strands_gated_memory.deciders.codecs.system_one import SystemOne
from strands_gated_memory.errors import BadAnswer

QUESTIONS = {
    "gate": Question("noul", "Needs memory.", {"true": "It does.", "false": "It does not."}, "gate", "x", "w/1"),
    "store": Question("choice", "Which store?", {"tastes": "what they like", "facts": None}),
    "use": Question("score", "How useful?", ("useless", "helpful", "needed")),
}
SYSTEM_ONE_REPLY = {
    "model": "jev-1.13.0",
    "answers": {
        "gate": {"type": "noul", "noul": 0.98},
        "store": {"type": "choice", "choice": "facts", "confidence": 0.4,
                  "probabilities": {"tastes": 0.3, "facts": 0.7}},
        "use": {"type": "score", "score": 1.7, "legend": {"0": "useless", "1": "helpful", "2": "needed"},
                "probabilities": {"0": 0.1, "1": 0.1, "2": 0.8}, "confidence": 0.9},
        "asked by nobody": {"type": "noul", "noul": 0.5},
    },
    "usage": {"input_tokens": 120, "output_tokens": 3},
    "latency_ms": 11.2,
}  # fmt: skip
OPENAI_REPLY = {
    "model": "gpt-6-luna",
    "answers": [
        {"type": "predicate", "name": "gate", "probability": 0.98},
        {"type": "choice", "name": "store", "choice": "facts", "confidence": 0.8,
         "probabilities": [{"value": "tastes", "probability": 0.3}, {"value": "facts", "probability": 0.7}]},
        {"type": "score", "name": "use", "score": 1.7, "confidence": 0.7,
         "probabilities": [{"value": 0, "label": "0", "probability": 0.1},
                           {"value": 1, "label": "1", "probability": 0.1},
                           {"value": 2, "label": "2", "probability": 0.8}]},
    ],
    "usage": {"input_tokens": 120, "output_tokens": 3, "total_tokens": 123},
}  # fmt: skip
ANSWERS = {
    "gate": Noul(0.98),
    "store": Choice("facts", {"tastes": 0.3, "facts": 0.7}),
    "use": Score(pytest.approx(1.7), {"0": 0.1, "1": 0.1, "2": 0.8}),
}


def test_system_one_sends_wire_fields_only_and_the_message_first():
    document = SystemOne().encode("jev-1.13.0", STATE, QUESTIONS)

    assert document == {
        "model": "jev-1.13.0",
        "state": {"message": STATE["message"], "previous": STATE["previous"]},
        "questions": {
            "gate": {"type": "noul", "instructions": "Needs memory.",
                     "criteria": {"true": "It does.", "false": "It does not."}},
            "store": {"type": "choice", "instructions": "Which store?",
                      "criteria": {"tastes": "what they like", "facts": None}},
            "use": {"type": "score", "instructions": "How useful?", "criteria": ["useless", "helpful", "needed"]},
        },
    }  # fmt: skip


def test_system_one_without_a_model_leaves_the_field_out():
    assert "model" not in SystemOne().encode(None, STATE, QUESTIONS)


def test_openai_folds_the_criteria_into_the_instructions():
    document = OpenAIDecisions().encode("gpt-6-luna", STATE, QUESTIONS)

    assert document["questions"] == [
        {"type": "predicate", "name": "gate",
         "instructions": "Needs memory. True means: It does. False means: It does not."},
        {"type": "choice", "name": "store", "instructions": "Which store?",
         "choices": [{"value": "tastes", "description": "what they like"}, {"value": "facts"}]},
        {"type": "score", "name": "use", "instructions": "How useful?",
         "levels": [{"label": "0", "description": "useless"}, {"label": "1", "description": "helpful"},
                    {"label": "2", "description": "needed"}]},
    ]  # fmt: skip
    assert document["input"].startswith('{"message": "What should I drink?"')


@pytest.mark.parametrize(
    ("codec", "reply"),
    [(SystemOne(), SYSTEM_ONE_REPLY), (OpenAIDecisions(), OPENAI_REPLY)],
    ids=["system one", "openai"],
)
def test_a_recorded_reply_is_read(codec, reply):
    found = codec.decode(reply, QUESTIONS)

    assert found.answers == ANSWERS
    assert found.model == reply["model"]
    assert found.input_tokens == 120


BROKEN = {
    "no answer": (None, "missing"),
    "another type": ({"type": "score", "score": 1, "probabilities": {"0": 1.0}}, "invalid"),
    "text": ({"type": "noul", "noul": "0.9"}, "invalid"),
    "true": ({"type": "noul", "noul": True}, "invalid"),
    "not a number": ({"type": "noul", "noul": float("nan")}, "invalid"),
    "infinite": ({"type": "noul", "noul": float("inf")}, "invalid"),
    "above one": ({"type": "noul", "noul": 1.0001}, "invalid"),
    "below zero": ({"type": "noul", "noul": -0.1}, "invalid"),
    "a list": ([0.9], "invalid"),
    "no value": ({"type": "noul"}, "invalid"),
    "refused": ({"type": "refusal"}, "refused"),
}


@pytest.mark.parametrize(("answer", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_costs_its_question_only(answer, reason):
    body = {"answers": {"a": answer, "b": {"type": "noul", "noul": 0.5}}}
    asked = {"a": Question("noul", "A."), "b": Question("noul", "B.")}

    assert SystemOne().decode(body, asked).answers == {"a": NoAnswer(reason), "b": Noul(0.5)}


BROKEN_OPENAI = {
    "missing": ([], "missing"),
    "refused": ([{"type": "refusal", "name": "a"}], "refused"),
    "twice": ([{"type": "predicate", "name": "a", "probability": 0.1}] * 2, "invalid"),
    "no probability": ([{"type": "predicate", "name": "a"}], "invalid"),
    "another type": ([{"type": "choice", "name": "a", "choice": "x", "probabilities": []}], "invalid"),
    "no mapping": (["a"], "missing"),
    "unknown type": ([{"type": "essay", "name": "a", "text": "well"}], "invalid"),
}


@pytest.mark.parametrize(("items", "reason"), BROKEN_OPENAI.values(), ids=BROKEN_OPENAI)
def test_openai_broken_answers(items, reason):
    found = OpenAIDecisions().decode({"answers": items}, {"a": Question("noul", "A.")})

    assert found.answers == {"a": NoAnswer(reason)}


@pytest.mark.parametrize("codec", [SystemOne(), OpenAIDecisions()], ids=["system one", "openai"])
@pytest.mark.parametrize("body", [None, [], "text", {}, {"answers": "no"}], ids=repr)
def test_a_document_of_another_kind_is_a_bad_answer(codec, body):
    with pytest.raises(BadAnswer):
        codec.decode(body, QUESTIONS)
