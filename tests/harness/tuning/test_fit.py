"""From labels to one file, and from the file to decisions."""

import pytest
from scripted import Broken, Scripted, write

from harness import cli
from harness.recording import recorder
from strands_gated_memory import RecallPipeline, RecallPolicy, Turn, resolve_decider
from strands_gated_memory.core.wordings import GATE_PLAIN
from strands_gated_memory.deciders.fitted import FittedDecider
from strands_gated_memory.embedded.decider import EmbeddedDecider
from strands_gated_memory.fitted_file import read_fitted

URL = "http://127.0.0.1:9"
"""A decider that exists by name; the tests answer in its place."""
NEEDED = [f"What should my usual order be, number {at}?" for at in range(10)]
IDLE = [f"What is {at} times 7?" for at in range(10)]


def items(messages, needed, **more):
    return [{"utterance": message, "needs_memory": needed, **more} for message in messages]


def labels(path, needed=NEEDED, idle=IDLE):
    """Utterances, of which the needed ones come with a namespace and records of every grade."""
    with_records = [
        {
            "id": f"n{at}",
            "utterance": message,
            "needs_memory": True,
            "namespaces": ["/facts/{actorId}/"] if at % 2 else ["/preferences/{actorId}/"],
            "records": [
                {"id": "must", "text": f"The user must have {at}.", "grade": 2},
                {"id": "may", "text": f"The user may have {at}.", "grade": 1},
                {"id": "not", "text": f"The user will not have {at}.", "grade": 0},
            ],
        }
        for at, message in enumerate(needed)
    ]
    return write(path, with_records + items(idle, False)).path


def answer(message, question):
    """P that tells all apart, a little differently each time."""
    little = (sum(map(ord, message)) % 10) / 100
    if question.about == "gate":
        return (0.6 if "usual" in message else 0.2) + little
    if question.about == "namespace":
        odd = int(message.rstrip("?")[-1]) % 2 == 1
        return (0.7 if odd == ("fact" in question.subject) else 0.3) + little
    return {"must": 0.5, "may": 0.3, "will": 0.1}[question.subject.split()[2]] + little


@pytest.fixture
def fit(tmp_path, monkeypatch, capsys):
    """Fit with a decider in the place of the one at URL; returns status, output, complaint and the file's path."""

    def call(decider, *arguments, spec=URL):
        monkeypatch.setattr(recorder, "open_decider", lambda _: decider)
        given = [str(one) for one in arguments]
        path = tmp_path / "fitted.json"
        status = cli.main(["fit", "--decider", spec, "--out", str(tmp_path / "out"), "--to", str(path), *given])
        said = capsys.readouterr()
        return status, said.out, said.err, path

    return call


def test_a_file_is_written_that_separates_what_the_labels_separate(fit, tmp_path):
    status, said, _, path = fit(Scripted(answer), "--data", labels(tmp_path / "mine.json"), "--min-recall", "1")

    assert status == 0
    fitted = read_fitted(path)
    assert (fitted.decider, fitted.model) == (URL, "scripted-1")
    assert list(fitted.data) == ["mine.json"]
    assert len(fitted.data["mine.json"]) == 64
    assert fitted.goal["min_recall"] == 1.0
    assert 0.29 < fitted.stages["gate"].threshold < 0.6
    assert 0.39 < fitted.stages["router"].threshold < 0.7
    for stage in fitted.stages.values():
        assert stage.figures.in_sample["recall"] == stage.figures.in_sample["avoided"] == 1.0
        assert stage.figures.folds == 5
        assert stage.figures.cross_validated["recall"] is not None
        assert stage.figures.held_out == {}
    assert (fitted.stages["gate"].items, fitted.stages["validator"].groups) == (20, 10)
    assert "in sample" in said
    assert "cross-validated" in said
    assert "held out" not in said


def test_the_file_holds_nothing_of_the_users(fit, tmp_path):
    _, _, _, path = fit(Scripted(answer), "--data", labels(tmp_path / "mine.json"))

    assert "usual order" not in path.read_text()
    assert "must have" not in path.read_text()


def test_policy_and_decider_decide_by_the_file(fit, tmp_path):
    _, _, _, path = fit(Scripted(answer), "--data", labels(tmp_path / "mine.json"))
    threshold = read_fitted(path).stages["gate"].threshold

    def says(p):
        return Scripted(lambda message, question: p)

    for p, outcome in ((threshold - 0.01, "closed"), (threshold + 0.01, "open")):
        fitted = FittedDecider(read_fitted(path), says(p), str(path))
        assert RecallPipeline(fitted).gate(Turn("?"), ["/f/"]).outcome == outcome
        assert RecallPipeline(says(p), RecallPolicy.from_file(path)).gate(Turn("?"), ["/f/"]).outcome == outcome


def test_across_folds_a_cut_does_not_know_what_it_is_measured_on(fit, tmp_path):
    """One needed turn scores lowest of all: in sample the cut lies under it, without it the cut lies above."""
    data = write(tmp_path / "gate.json", items(NEEDED, True) + items(IDLE, False)).path
    odd = Scripted(lambda message, question: 0.1 if message == NEEDED[3] else answer(message, question))
    _, _, _, path = fit(odd, "--data", data, "--min-recall", "1")
    figures = read_fitted(path).stages["gate"].figures

    assert figures.in_sample["recall"] == 1.0
    assert figures.cross_validated["recall"] == 0.9


def test_a_replay_asks_nobody_and_writes_the_same(fit, tmp_path):
    data = labels(tmp_path / "mine.json")
    _, before, _, path = fit(Scripted(answer), "--data", data)
    first = path.read_bytes()
    status, after, _, _ = fit(Broken(), "--data", data, "--replay")

    assert status == 0
    assert after == before
    assert path.read_bytes() == first


def test_what_was_held_out_is_measured_and_called_so(fit, tmp_path):
    apart = labels(tmp_path / "apart.json", [f"My usual, number {at}?" for at in range(4)], ["How far is the moon?"])
    _, said, _, path = fit(Scripted(answer), "--data", labels(tmp_path / "mine.json"), "--held-out", apart)

    assert "held out" in said
    assert read_fitted(path).stages["gate"].figures.held_out["recall"] == 1.0
    assert list(read_fitted(path).data) == ["mine.json"]


def test_what_was_fitted_on_is_not_held_out(fit, tmp_path):
    data = labels(tmp_path / "mine.json")
    status, _, complaint, path = fit(Scripted(answer), "--data", data, "--held-out", data)

    assert status == 2
    assert "would not be held out" in complaint
    assert not path.exists()


def test_a_decider_that_fails_leaves_no_file(fit, tmp_path):
    status, _, complaint, path = fit(Broken(), "--data", labels(tmp_path / "mine.json"))

    assert status == 1
    assert "decider errors" in complaint
    assert not path.exists()


def test_a_stage_without_labels_is_left_to_the_decider(fit, tmp_path):
    data = write(tmp_path / "gate.json", items(NEEDED, True) + items(IDLE, False)).path
    _, said, _, path = fit(Scripted(answer), "--data", data)

    assert set(read_fitted(path).stages) == {"gate"}
    assert "validator: the data has no labels for it" in said


def test_few_labels_are_not_measured_across_folds_and_that_is_said(fit, tmp_path):
    data = write(tmp_path / "few.json", items(NEEDED[:1], True) + items(IDLE[:1], False)).path
    _, said, _, path = fit(Scripted(answer), "--data", data)

    assert "too few labels" in " ".join(said.split())
    assert read_fitted(path).stages["gate"].figures.cross_validated == {}


def test_another_wording_is_asked_and_kept_word_for_word(fit, tmp_path):
    scripted = Scripted(answer)
    _, _, _, path = fit(
        scripted, "--data", labels(tmp_path / "mine.json"), "--wording", "gate/plain", "--stage", "gate"
    )

    assert {question.wording for _, asked in scripted.requests for question in asked.values()} == {"gate/plain/1"}
    assert read_fitted(path).stages["gate"].question == GATE_PLAIN
    assert RecallPolicy.from_file(path).gate.question == GATE_PLAIN


def test_a_dearer_miss_lowers_the_cut(fit, tmp_path):
    data = write(tmp_path / "gate.json", items(NEEDED, True) + items(IDLE, False)).path
    noisy = Scripted(lambda message, question: 0.1 if message == NEEDED[3] else answer(message, question))
    cuts = [
        read_fitted(fit(noisy, "--data", data, "--cost-ratio", ratio)[3]).stages["gate"].threshold
        for ratio in ("1", "50")
    ]

    assert cuts[0] > 0.29
    assert cuts[1] <= 0.1


@pytest.mark.parametrize(
    ("arguments", "spec", "told"),
    [
        ((), "cosine", "it must name a decider that an agent can use"),
        (("--heads",), URL, "leave the option out"),
        (("--wording", "gate/plane"), URL, "not published"),
        (("--runs", "2"), URL, "one run"),
    ],
)
def test_what_makes_no_sense_is_refused(fit, tmp_path, arguments, spec, told):
    status, _, complaint, _ = fit(Scripted(answer), "--data", labels(tmp_path / "mine.json"), *arguments, spec=spec)

    assert status == 2
    assert told in complaint


def test_heads_on_the_embedded_model(tmp_path, capsys):
    """A small real run: the file's heads are read and decide, without scikit-learn at run time."""
    needed = ["What should I cook tonight?", "Book me the usual seat.", "Which film would I like?", "Where do I live?"]
    idle = ["What is 17 times 23?", "Thanks!", "Explain a bloom filter.", "How many feet are in a mile?"]
    data = write(tmp_path / "mine.json", items(needed, True) + items(idle, False)).path
    arguments = [
        "fit",
        "--heads",
        "--stage",
        "gate",
        "--data",
        str(data),
        "--out",
        str(tmp_path / "out"),
        "--to",
        str(tmp_path / "fitted.json"),
    ]

    assert cli.main(arguments) == 0
    assert "from_file" not in capsys.readouterr().out  # its thresholds would be wrong without the head
    fitted = read_fitted(tmp_path / "fitted.json")
    assert fitted.stages["gate"].head is not None
    pipeline = RecallPipeline(resolve_decider(f"fitted:{tmp_path / 'fitted.json'}"), RecallPolicy(deadline_s=60))
    ours = [pipeline.gate(Turn(message), ["/f/"]).probability for message in (needed[0], idle[0])]
    assert ours[0] > fitted.stages["gate"].threshold > 0.0
    assert ours[0] > ours[1]
    assert fitted.model == EmbeddedDecider().model_id


def test_heads_for_labels_of_one_kind_are_not_fitted_and_that_is_said(tmp_path, capsys):
    data = write(tmp_path / "mine.json", items(NEEDED[:3], True)).path

    assert cli.main(["fit", "--heads", "--data", str(data), "--out", str(tmp_path / "out")]) == 2
    assert "gate: not fitted: a cut needs labels of both kinds" in capsys.readouterr().err
