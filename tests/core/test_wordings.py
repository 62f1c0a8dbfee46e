"""Published wordings: five of the gate's, five of the record's, the router's; every answer becomes P(yes)."""

import hashlib
import json

import pytest

from strands_gated_memory import RecallPipeline, RecallPolicy, Record, Turn, resolve_decider
from strands_gated_memory.core import wordings as w
from strands_gated_memory.core.questions import Choice, NoAnswer, Noul, Question, Score

TURN = Turn("What should I drink?")


def test_the_default_is_the_one_with_criteria():
    policy = RecallPolicy()

    assert policy.gate.question == w.GATE_CRITERIA
    assert policy.validator.question == w.RECORD_CRITERIA
    assert policy.router.question == w.ROUTE_CRITERIA


def test_ids_are_unique_and_there_are_five_of_each():
    assert len({one.key for one in w.WORDINGS}) == 11
    assert len(w.GATE_WORDINGS) == len(w.RECORD_WORDINGS) == 5


@pytest.mark.parametrize("wording", w.WORDINGS, ids=lambda one: one.key)
def test_a_wording_makes_a_question_that_names_it(wording):
    question = wording.question("The user's dog is <Biscuit> & co.")

    assert question.wording == wording.key
    assert "{subject}" not in question.instructions
    assert ("&lt;Biscuit&gt; &amp; co." in question.instructions) == (wording not in w.GATE_WORDINGS)


HASHES = {
    "gate/criteria/1": "132f9b3ce2a7543b",
    "gate/plain/1": "4e766b64c830fe34",
    "gate/counterfactual/1": "30e316161e9bfa05",
    "gate/inverted/1": "d51b3af570ca4d1c",
    "gate/graded/1": "0d49bbbcfefa499f",
    "record/criteria/1": "cec6374ef0ec2d13",
    "record/plain/1": "a7b0a3a07fb8a008",
    "record/topical/1": "2ea7781b52768070",
    "record/counterfactual/1": "42eca3a995edd2be",
    "record/graded/1": "47f2dc154c24feb2",
    "route/criteria/1": "f977e40fb4bcbfb3",
    "record/instructions/1": "2ade6eef74981ef3",
}
"""Of what a model is asked and how its answer is read, as the first release has them."""


@pytest.mark.parametrize("wording", [*w.WORDINGS, w.RECORD_INSTRUCTIONS], ids=lambda one: one.key)
def test_a_text_is_what_was_published_under_its_version(wording):
    """Thresholds are kept by id and version, and recordings by the text: a changed one gets a new version."""
    question = wording.question("a <b> & c" if w.SUBJECT in wording.instructions else None)
    asked = [question.wire(), wording.about, wording.inverted, list(wording.yes)]
    found = hashlib.sha256(json.dumps(asked, ensure_ascii=False).encode()).hexdigest()

    assert found[:16] == HASHES[wording.key]


READ = {
    "a yes": (w.GATE_PLAIN, Noul(0.7), Noul(0.7)),
    "an inverted yes": (w.GATE_INVERTED, Noul(0.75), Noul(0.25)),
    "a grade": (w.GATE_GRADED, Score(2.0, {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.4}), Noul(pytest.approx(0.7))),
    "a choice": (
        w.Wording("c", "Which?", {"needed": None, "not": None}, "choice", yes=("needed",)),
        Choice("not", {"needed": 0.25, "not": 0.75}),
        Noul(0.25),
    ),
    "no answer": (w.GATE_INVERTED, NoAnswer("refused"), NoAnswer("refused")),
}


@pytest.mark.parametrize(("wording", "answer", "expected"), READ.values(), ids=READ)
def test_an_answer_becomes_p_of_yes(wording, answer, expected):
    assert wording.read(answer) == expected


def answering(seen):
    """0.9 to a noul that says yes; to the inverted one 0.1; a grade of 90 % in the upper half."""

    def decide(state, questions):
        seen.extend(questions.values())
        return {
            name: {"type": "score", "probabilities": {"0": 0.05, "1": 0.05, "2": 0.3, "3": 0.6}}
            if one["type"] == "score"
            else {"type": "noul", "noul": 0.1 if "never met this user" in one["instructions"] else 0.9}
            for name, one in questions.items()
        }

    return decide


@pytest.mark.parametrize("gate", w.GATE_WORDINGS, ids=lambda one: one.key)
@pytest.mark.parametrize("record", w.RECORD_WORDINGS, ids=lambda one: one.key)
def test_every_wording_decides_a_recall(gate, record):
    seen = []
    policy = RecallPolicy(gate={"question": gate}, validator={"question": record})
    recall = RecallPipeline(resolve_decider(answering(seen)), policy).recall(
        TURN, ["/facts/"], lambda name: [Record("Likes tea.", name)]
    )

    assert recall.trace.gate.probability == pytest.approx(0.9)
    assert recall.trace.judgements[0].probability == pytest.approx(0.9)
    assert any("Likes tea." in one["instructions"] for one in seen)


def test_a_question_of_ones_own():
    seen = []
    policy = RecallPolicy(
        gate={"question": Question("noul", "Needs the diary.")},
        router={"question": w.Wording("mine/route", "Look into {subject}?")},
        validator={"question": Question("noul", "Quote {subject}?")},
    )
    RecallPipeline(resolve_decider(answering(seen)), policy).recall(
        TURN, ["/facts/", "/preferences/"], lambda name: [Record("Likes tea.", name)]
    )

    asked = [one["instructions"] for one in seen]
    assert asked[0] == "Needs the diary."
    assert asked[1].startswith("Look into facts about the user")
    assert "Quote Likes tea.?" in asked


WRONG = {
    "no place for the record": {"validator": {"question": Question("noul", "Is it useful?")}},
    "no place for the description": {"router": {"question": w.Wording("r", "Search?")}},
    "a text": {"gate": {"question": "Does it need memory?"}},
    "a score that does not say what is yes": {"gate": {"question": Question("score", "How much?", ("a", "b"))}},
}


@pytest.mark.parametrize("policy", WRONG.values(), ids=WRONG)
def test_a_question_that_cannot_work_is_refused(policy):
    with pytest.raises(ValueError, match=r"question"):
        RecallPolicy(**policy)


@pytest.mark.parametrize(
    "fields",
    [{"type": "score", "criteria": ("a", "b")}, {"type": "score", "criteria": ("a", "b"), "yes": ("2",)},
     {"type": "choice", "criteria": {"a": None}, "yes": ("b",)}, {"criteria": ("a", "b")}],
)  # fmt: skip
def test_a_wording_that_cannot_be_read_is_refused(fields):
    with pytest.raises(ValueError, match="wording 'x'"):
        w.Wording("x", "Text.", **fields)
