"""What was fitted on a user's labels: the file, the policy and the decider that read it."""

import json
import logging
import math
import subprocess
import sys
from dataclasses import asdict

import pytest

from strands_gated_memory import RecallPipeline, RecallPolicy, Record, Turn, resolve_decider
from strands_gated_memory.core.fitted import LogisticHead
from strands_gated_memory.core.questions import NoAnswer, Noul, Reply, Thresholds
from strands_gated_memory.core.wordings import (
    GATE_CRITERIA,
    GATE_PLAIN,
    RECORD_CRITERIA,
    ROUTE_CRITERIA,
    Wording,
)
from strands_gated_memory.deciders.check import check
from strands_gated_memory.deciders.fitted import FittedDecider
from strands_gated_memory.embedded.decider import EmbeddedDecider
from strands_gated_memory.embedded.logistic import INPUTS, input_width
from strands_gated_memory.errors import ConfigurationError
from strands_gated_memory.fitted_file import read_fitted
from strands_gated_memory.policy import GateSettings
from strands_gated_memory.reporting.log import log_failures

ASK = Turn("What should I drink?")
PATIENT = RecallPolicy(deadline_s=60)
"""For the embedded model on a busy machine."""


@pytest.fixture(scope="module", autouse=True)
def _warm():
    EmbeddedDecider().warm()


class Says:
    """Answers every noul with one probability, as a model with an id."""

    def __init__(self, p, model="m-1", thresholds=None):
        self.p, self.model = p, model
        if thresholds:
            self.thresholds = thresholds

    def decide(self, state, questions):
        return Reply({name: Noul(self.p) for name in questions}, model=self.model)


def question(wording):
    return json.loads(json.dumps(asdict(wording)))


def fitted_by(path, decider=None):
    """The decider of a file; another asked in the place of the file's own."""
    if decider is None:
        return resolve_decider(f"fitted:{path}")
    return FittedDecider(read_fitted(path), decider, str(path))


@pytest.fixture
def written(tmp_path):
    """Write a file; `stages` are merged into the three default ones, None takes one away."""

    def write(stages=None, /, **fields):
        document = {
            "format": 1,
            "decider": "embedded",
            "model": "m-1",
            "date": "2026-11-30",
            "stages": {
                "gate": {"question": question(GATE_CRITERIA), "threshold": 0.4},
                "router": {"question": question(ROUTE_CRITERIA), "threshold": 0.3},
                "validator": {"question": question(RECORD_CRITERIA), "threshold": 0.6},
            },
            "select": {"mode": "hybrid", "relative": 0.5},
        }
        for name, change in (stages or {}).items():
            if change is None:
                del document["stages"][name]
            else:
                document["stages"][name] |= change
        path = tmp_path / "fitted.json"
        path.write_text(json.dumps(document | fields))
        return path

    return write


@pytest.mark.parametrize(("p", "outcome"), [(0.39, "closed"), (0.41, "open")])
def test_the_files_thresholds_decide_where_the_policy_sets_none(written, p, outcome):
    gate = RecallPipeline(fitted_by(written(), Says(p))).gate(ASK, ["/facts/"])

    assert gate.outcome == outcome


def test_the_policy_still_wins(written):
    pipeline = RecallPipeline(fitted_by(written(), Says(0.39)), RecallPolicy(gate={"threshold": 0.1}))

    assert pipeline.gate(ASK, ["/facts/"]).outcome == "open"


def test_where_the_file_has_no_threshold_the_deciders_own_holds_then_the_default(written):
    path = written({"router": None, "validator": None}, select={"mode": "hybrid"})

    assert fitted_by(path, Says(0.5)).thresholds == Thresholds(0.4, None, None)
    own = Says(0.5, thresholds=Thresholds(0.9, 0.8, 0.7, 0.6))
    assert fitted_by(path, own).thresholds == Thresholds(0.4, 0.8, 0.7, 0.6)


def test_the_specification_makes_the_files_decider(written):
    decider = resolve_decider(f"fitted:{written()}")

    assert isinstance(decider, FittedDecider)
    assert decider.thresholds == Thresholds(0.4, 0.3, 0.6, 0.5)
    decider.warm()
    assert RecallPipeline(decider, PATIENT).gate(Turn("Hello!"), ["/facts/"]).outcome == "closed"


def test_no_answer_stays_none(written):
    class Abstains:
        def decide(self, state, questions):
            return dict.fromkeys(questions, NoAnswer("abstained"))

    path = written({"gate": {"head": head("gate")}})

    assert RecallPipeline(fitted_by(path, Abstains())).gate(ASK, ["/facts/"]).outcome == "abstained"


def test_another_model_is_used_and_said_once(written, caplog):
    pipeline = RecallPipeline(fitted_by(written(), Says(0.7, model="m-2")))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            log_failures(pipeline.recall(ASK, ["/facts/"], lambda _: [Record("Likes tea.", "/facts/")]))

    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2  # the gate's and the validator's threshold
    assert all("fitted on m-1, not on m-2" in line for line in said)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (GATE_PLAIN, "is for gate/criteria/1, not for gate/plain/1"),
        (Wording("gate/criteria", "Other text.", about="gate"), "another text of gate/criteria/1"),
    ],
)
def test_another_question_is_said(written, asked, told):
    pipeline = RecallPipeline(fitted_by(written(), Says(0.7)), RecallPolicy(gate={"question": asked}))
    recall = pipeline.recall(ASK, ["/facts/"], lambda _: [])

    assert any(told in why for why in recall.trace.decider_calls[0].untuned)


def test_the_model_and_the_questions_of_the_file_draw_no_doubt(written):
    recall = RecallPipeline(fitted_by(written(), Says(0.7))).recall(
        ASK, ["/facts/"], lambda _: [Record("Likes tea.", "/facts/")]
    )

    assert [call.untuned for call in recall.trace.decider_calls] == [(), ()]


# The policy


def test_from_file_sets_questions_thresholds_and_selection(written):
    policy = RecallPolicy.from_file(
        written({"gate": {"question": question(GATE_PLAIN)}}, select={"mode": "ranking", "relative": 0.7})
    )

    assert policy.gate.question == GATE_PLAIN
    assert (policy.gate.threshold, policy.router.threshold, policy.validator.threshold) == (0.4, 0.3, 0.6)
    assert (policy.select.mode, policy.select.relative) == ("ranking", 0.7)
    assert RecallPipeline(Says(0.39), policy).gate(ASK, ["/facts/"]).outcome == "closed"


@pytest.mark.parametrize("gate", [{"threshold": 0.9}, GateSettings(threshold=0.9)])
def test_other_settings_are_added_and_win(written, gate):
    policy = RecallPolicy.from_file(written(), gate=gate, select={"max_records": 3}, deadline_s=1.5)

    assert policy.gate.threshold == 0.9
    assert (policy.select.max_records, policy.select.relative) == (3, 0.5)
    assert policy.deadline_s == 1.5


# Heads


def head(stage, **changes):
    """A head that passes the shipped head's logit through, times `own`."""
    width = input_width(INPUTS[stage], 384, with_subject=stage != "gate")
    own = changes.pop("own", 1.0)
    return {
        "inputs": list(INPUTS[stage]),
        "encoder_width": 384,
        "mean": [0.0] * width,
        "scale": [1.0] * width,
        "weight": [own] + [0.0] * (width - 1),
        "intercept": 0.0,
    } | changes


RECORDS = [Record("The user drinks oat milk.", "/facts/"), Record("The user has a dog.", "/facts/")]


def test_a_head_that_passes_on_the_shipped_logit_gives_the_shipped_answers(written):
    path = written(
        {"gate": {"head": head("gate")}, "validator": {"head": head("validator")}}, model=EmbeddedDecider().model_id
    )
    fitted, plain = RecallPipeline(fitted_by(path), PATIENT), RecallPipeline(EmbeddedDecider(), PATIENT)

    assert fitted.gate(ASK, ["/facts/"]).probability == pytest.approx(
        plain.gate(ASK, ["/facts/"]).probability, rel=1e-4
    )
    for ours, theirs in zip(fitted.judge(ASK, RECORDS), plain.judge(ASK, RECORDS), strict=True):
        assert ours.probability == pytest.approx(theirs.probability, rel=1e-4)


def test_a_head_turned_round_turns_the_answer_round(written):
    path = written({"gate": {"head": head("gate", own=-1.0)}}, model=EmbeddedDecider().model_id)
    p = RecallPipeline(EmbeddedDecider(), PATIENT).gate(ASK, ["/facts/"]).probability

    assert RecallPipeline(fitted_by(path), PATIENT).gate(ASK, ["/facts/"]).probability == pytest.approx(1 - p, abs=1e-4)


def test_a_head_abstains_where_the_embedded_model_does(written):
    path = written({"gate": {"head": head("gate")}}, model=EmbeddedDecider().model_id)

    assert (
        RecallPipeline(fitted_by(path), PATIENT).gate(Turn("Was soll ich heute trinken?"), ["/f/"]).outcome
        == "abstained"
    )


def test_heads_for_another_embedded_model_are_not_used_and_that_is_said(written):
    path = written({"gate": {"head": head("gate", own=-1.0), "threshold": 0.999}}, model="embedded-0")
    decider = fitted_by(path)
    recall = RecallPipeline(decider, PATIENT).recall(ASK, ["/facts/"], lambda _: [])

    assert (
        recall.trace.gate.probability == RecallPipeline(EmbeddedDecider(), PATIENT).gate(ASK, ["/facts/"]).probability
    )
    assert decider.thresholds.gate == EmbeddedDecider().thresholds.gate  # the head's own would not fit
    assert any("is for embedded-0 and is not used with" in why for why in recall.trace.decider_calls[0].untuned)


def test_thresholds_of_heads_are_left_to_the_fitted_decider(written):
    path = written({"gate": {"head": head("gate"), "threshold": 1.0}}, model=EmbeddedDecider().model_id)
    policy = RecallPolicy.from_file(path, deadline_s=60)

    assert policy.gate.threshold is None
    # With the plain decider nothing of the file's scale is used; with the fitted one its thresholds are.
    assert RecallPipeline(EmbeddedDecider(), policy).gate(ASK, ["/facts/"]).outcome == "open"
    assert RecallPipeline(fitted_by(path), policy).gate(ASK, ["/facts/"]).outcome == "closed"


# Bad files


@pytest.mark.parametrize(
    ("stages", "fields", "where"),
    [
        ({"gate": {"threshold": 1.2}}, {}, "stages.gate.threshold"),
        ({"gate": {"threshold": "high"}}, {}, "stages.gate.threshold"),
        ({"gate": {"treshold": 0.2}}, {}, "stages.gate.treshold"),
        ({"gate": {"question": {"id": "x", "instructions": ""}}}, {}, "stages.gate.question.instructions"),
        ({"gate": {"question": {"id": "x", "instructions": "?", "type": "score"}}}, {}, "stages.gate.question"),
        ({"gate": {"calibration": {"kind": "platt", "slope": 1, "intercept": 0}}}, {}, "stages.gate.calibration"),
        ({"gate": {"question": {"id": "x", "instructions": "?", "colour": "red"}}}, {}, "stages.gate.question.colour"),
        ({"gate": {"question": {"id": "x", "instructions": ["?"]}}}, {}, "stages.gate.question.instructions"),
        ({"gate": {"head": head("gate", weight=[1.0])}}, {}, "mean, scale and weight"),
        ({"gate": {"head": head("gate", inputs=["turn", "mood"])}}, {"model": None}, "stages.gate.head.inputs: 'mood'"),
        ({"gate": {"head": head("gate", inputs=["overlap"])}}, {"model": None}, "stages.gate.head.inputs"),
        ({"gate": {"head": head("gate", inputs=[])}}, {"model": None}, "stages.gate.head.inputs"),
        ({"gate": {"head": head("gate")}}, {"decider": "auto"}, "heads are for 'embedded' alone"),
        ({}, {"decider": "fitted:other.json"}, "cannot ask another fitted one"),
        ({}, {"decider": " Fitted :other.json"}, "cannot ask another fitted one"),
        ({"validator": {"question": {"id": "x", "instructions": "Is it {so}?"}}}, {}, "stages.validator.question"),
        ({"router": {"question": {"id": "x", "instructions": "Worth a search?"}}}, {}, "stages.router.question"),
        ({}, {"decider": "jev,fitted:other.json"}, "cannot ask another fitted one"),
        ({}, {"decider": "jev,embeded"}, "decider: decider 'embeded' is unknown; did you mean 'embedded'"),
        ({}, {"decider": "embeded"}, "decider: decider 'embeded' is unknown; did you mean 'embedded'"),
        ({}, {"stages": {}}, "stages"),
        ({}, {"stages": {"gates": {}}}, "stages.gates"),
        ({}, {"format": 2}, "format"),
        ({}, {"date": "yesterday"}, "date"),
        ({}, {"select": {"mode": "best"}}, "select.mode"),
    ],
)
def test_a_bad_file_is_refused_at_construction_naming_file_and_field(written, stages, fields, where):
    path = written(stages, **fields)
    with pytest.raises(ConfigurationError) as caught:
        resolve_decider(f"fitted:{path}")

    assert str(path) in str(caught.value)
    assert where in str(caught.value)


@pytest.mark.parametrize("stage", ["validator", "router"])
def test_a_policy_takes_no_file_whose_question_leaves_out_the_text_asked_about(written, stage):
    path = written({stage: {"question": {"id": "x", "instructions": "Does it {belong}?"}}})

    with pytest.raises(ConfigurationError, match=rf"fitted\.json.*stages\.{stage}\.question.*subject"):
        RecallPolicy.from_file(path)


@pytest.mark.parametrize("decider", ["embeded", "jev,embeded", "stock", "fitted:other.json", ",", "embedded,"])
def test_a_policy_takes_no_file_whose_decider_is_unknown(written, decider):
    with pytest.raises(ConfigurationError, match=r"fitted\.json: decider: .*"):
        RecallPolicy.from_file(written(decider=decider))


def test_a_policy_takes_the_file_of_a_decider_that_could_not_be_made_here(written, monkeypatch):
    monkeypatch.delenv("JEV_API_KEY", raising=False)
    path = written(decider="jev,http://127.0.0.1:9/a,b")

    assert RecallPolicy.from_file(path).gate.threshold == 0.4


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"format": 1e999}', "NaN", "[" * 100_000, '{"date": NaN}'])
def test_what_is_no_such_file_at_all(tmp_path, text):
    path = tmp_path / "fitted.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"fitted\.json"):
        read_fitted(path)
    with pytest.raises(ConfigurationError, match=r"fitted\.json"):
        RecallPolicy.from_file(path)


@pytest.mark.parametrize("name", ["missing.json", "a\0b", "."])
def test_a_file_that_cannot_be_read(tmp_path, name):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        resolve_decider(f"fitted:{tmp_path}/{name}")


def test_a_file_too_large_to_be_one_is_not_read_whole(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(20_000_000)
    with pytest.raises(ConfigurationError, match="over 16,000,000 bytes"):
        read_fitted(path)


def test_a_head_rises_with_its_weights():
    features = [[0.0, 1.0], [0.0, 2.0]]
    one = LogisticHead(inputs=(), encoder_width=1, mean=(0.0, 1.0), scale=(1.0, 2.0), weight=(0.0, 4.0), intercept=-1.0)
    import numpy as np

    from strands_gated_memory.embedded.logistic import probabilities

    found = probabilities(one, np.array(features))
    assert found == pytest.approx([1 / (1 + math.e), 1 / (1 + math.exp(-1.0))])


def test_running_it_needs_no_scikit_learn(written):
    path = written({"gate": {"head": head("gate")}}, model=EmbeddedDecider().model_id)
    code = (
        "import sys; from strands_gated_memory import *\n"
        f"d = resolve_decider('fitted:{path}'); d.warm()\n"
        f"p = RecallPipeline(d, RecallPolicy.from_file({str(path)!r}, deadline_s=60))\n"
        "assert p.gate(Turn('Hello!'), ['/f/']).probability is not None\n"
        "assert 'sklearn' not in sys.modules and 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=110)


@pytest.mark.parametrize("own", [True, False])
def test_it_answers_custom_questions_if_the_decider_that_is_asked_does(written, own):
    asked = Says(0.5)
    asked.answers_custom = own

    assert fitted_by(written(), asked).answers_custom is own


def test_a_list_that_a_file_names_is_checked_member_by_member(written):
    def tired(state, questions):
        raise ZeroDivisionError("no")

    members = check(fitted_by(written(), resolve_decider([tired, Says(0.9)]))).members

    assert "ZeroDivisionError" in members["tired"]
    assert members["Says"] is None
