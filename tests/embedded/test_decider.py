from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from strands_gated_memory.core.questions import (
    GATE,
    Answer,
    Decider,
    NoAnswer,
    Noul,
    Question,
    State,
    checked,
    namespace_question,
    record_question,
)
from strands_gated_memory.embedded.decider import EmbeddedDecider

ABSTAINED = NoAnswer("abstained")


@pytest.fixture(scope="module")
def decider() -> EmbeddedDecider:
    return EmbeddedDecider()


def state(message: str, *previous: str) -> State:
    return {"message": message, "previous": list(previous)}


def p(answer: Answer) -> float:
    assert isinstance(answer, Noul)
    return answer.noul


def test_it_is_a_decider(decider: EmbeddedDecider) -> None:
    """It has the protocol's method, thresholds within 0..1 and a name."""
    assert isinstance(decider, Decider)
    assert all(0 <= value <= 1 for value in vars(decider.thresholds).values())
    assert decider.model_id == "embedded-2"


def test_making_one_loads_nothing() -> None:
    """Constructing a decider imports neither numpy nor a runtime by our doing."""
    code = (
        "import sys\n"
        "import strands_gated_memory\n"
        "before = set(sys.modules)\n"
        "import strands_gated_memory.embedded.decider as d\n"
        "d.EmbeddedDecider()\n"
        "heavy = {'onnxruntime', 'tokenizers', 'numpy'} & (set(sys.modules) - before)\n"
        "assert not {'onnxruntime', 'tokenizers'} & set(sys.modules), 'runtime loaded'\n"
        "assert not heavy, heavy\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "message",
    ["", " ", "😀😀😀", "hi", "x" * 20_000, "What should I cook? " * 1000, "\x00\ud800", "SELECT 1;", "\n\n?"],
)
def test_any_message_gets_probabilities(decider: EmbeddedDecider, message: str) -> None:
    """Empty, long, broken: an answer within 0..1 to every question."""
    questions = {
        "gate": GATE,
        "0": namespace_question("facts about the user"),
        "1": record_question("The user is vegetarian."),
        "2": record_question(""),
    }

    answers = decider.decide(state(message), questions)

    assert set(answers) == set(questions)
    assert all(0 <= p(checked(answers[key], questions[key])) <= 1 for key in questions)


def test_a_message_in_another_language_abstains_from_all(decider: EmbeddedDecider) -> None:
    """The pipeline then searches as if there were no gate."""
    questions = {"gate": GATE, "0": namespace_question("facts"), "1": record_question("The user is vegetarian.")}

    answers = decider.decide(state("Welche Schuhgröße hat mein Sohn noch mal?"), questions)

    assert answers == dict.fromkeys(questions, ABSTAINED)


def test_a_record_in_another_language_abstains_alone(decider: EmbeddedDecider) -> None:
    """Only that record is kept unjudged."""
    foreign = record_question("El usuario prefiere el café sin azúcar.")

    answers = decider.decide(state("coffee?"), {"a": record_question("The user drinks tea."), "b": foreign})

    assert isinstance(answers["a"], Noul)
    assert answers["b"] == ABSTAINED


@pytest.mark.parametrize(
    "question",
    [
        Question(type="noul", instructions="The user is angry."),
        Question(type="choice", instructions="Pick.", criteria={"a": None, "b": None}, about="gate"),
        Question(type="score", instructions="Rate.", criteria=["low", "high"], about="record", subject="x"),
        Question(type="noul", instructions="A record without a subject.", about="record"),
    ],
    ids=["custom", "choice", "score", "no subject"],
)
def test_what_it_was_not_fitted_on_abstains(decider: EmbeddedDecider, question: Question) -> None:
    """It never guesses."""
    assert decider.decide(state("hello"), {"q": question}) == {"q": ABSTAINED}


def test_no_questions_no_answers(decider: EmbeddedDecider) -> None:
    """An empty request is not an error."""
    assert decider.decide(state("hello"), {}) == {}


def test_plain_cases_fall_on_the_right_side(decider: EmbeddedDecider) -> None:
    """A thank-you stays closed, a question about the user's own life opens."""
    threshold = decider.thresholds.gate

    assert p(decider.decide(state("thanks, perfect!"), {"g": GATE})["g"]) < threshold
    assert p(decider.decide(state("What's the name of my dentist again?"), {"g": GATE})["g"]) >= threshold


def test_history_counts(decider: EmbeddedDecider) -> None:
    """The same words after another exchange get another probability, for the gate and a record."""
    questions = {"gate": GATE, "0": record_question("The user does not eat fish.")}
    personal = state("And for dinner?", "What should I have for lunch?", "You like lentil soup; there is some left.")
    general = state("And for dinner?", "What did the Romans eat at noon?", "Bread, cheese and olives, mostly.")

    first, second = decider.decide(personal, questions), decider.decide(general, questions)

    assert abs(p(first["gate"]) - p(second["gate"])) > 0.05
    assert p(first["0"]) != p(second["0"])


def test_a_record_that_matters_ranks_above_one_that_does_not(decider: EmbeddedDecider) -> None:
    """The record head orders by bearing."""
    answers = decider.decide(
        state("What should I cook tonight?"),
        {
            "diet": record_question("The user is vegetarian and allergic to peanuts."),
            "car": record_question("The user's car is serviced at Hansen's garage."),
        },
    )

    assert p(answers["diet"]) > p(answers["car"])


def test_an_answer_does_not_depend_on_the_other_questions(decider: EmbeddedDecider) -> None:
    """Alone or among fifty records, a record gets the same probability."""
    fresh = EmbeddedDecider()
    mine = record_question("The user runs on Tuesdays at six.")
    others = {str(n): record_question(f"The user has {n} plants. " * (n % 7 + 1)) for n in range(50)}

    alone = p(fresh.decide(state("Can we meet on Tuesday?"), {"mine": mine})["mine"])
    among = p(decider.decide(state("Can we meet on Tuesday?"), {**others, "mine": mine})["mine"])

    assert among == pytest.approx(alone, abs=1e-4)


def test_foreign_history_is_left_out(decider: EmbeddedDecider) -> None:
    """A translation in the previous turn does not make an English message unreadable."""
    translated = state("thanks!", "Translate 'good morning'.", "¡Buenos días, qué tal está usted!")

    answer = decider.decide(translated, {"g": GATE})

    assert answer["g"] == decider.decide(state("thanks!"), {"g": GATE})["g"]


def test_a_heads_file_of_another_format_is_refused(tmp_path: Path) -> None:
    """The error says which format this version reads."""
    import zipfile

    path = tmp_path / "heads.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("heads.json", '{"format": 99}')

    with pytest.raises(ValueError, match="format 99; this version reads format 1"):
        EmbeddedDecider(heads=path)


def test_package_data_stays_small() -> None:
    """The wheel carries at most 30 MB of model."""
    from strands_gated_memory.embedded.encoder import DATA

    assert sum(path.stat().st_size for path in DATA.iterdir()) <= 30_000_000


def test_bilinear_heads_can_be_read(tmp_path: Path) -> None:
    """The file's layout holds a low-rank bilinear term, for heads to come."""
    import io
    import json
    import zipfile

    from strands_gated_memory.embedded.features import Blocks, Texts
    from strands_gated_memory.embedded.heads import read_heads

    def npy(array: object) -> bytes:
        buffer = io.BytesIO()
        np.save(buffer, np.asarray(array, np.float32))
        return buffer.getvalue()

    network = {"inputs": [], "bilinear": [["message", "subject", "p", "q"]], "layers": [["w", "b"]]}
    spec = {
        "format": 1,
        "model_id": "t",
        "thresholds": {"gate": 0.1, "router": 0.1, "validator": 0.1},
        "heads": {"record": {"networks": [network], "slope": 1.0, "intercept": 0.0}},
    }
    path = tmp_path / "heads.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("heads.json", json.dumps(spec))
        for name, array in {"p": np.eye(3), "q": np.eye(3), "w": np.ones((3, 1)), "b": [0.5]}.items():
            file.writestr(f"{name}.npy", npy(array))
    turn = {"message": np.array([1, 2, 3], np.float32)}
    found = Blocks(Texts.of("m", []), turn, ["s"], np.array([[1, 1, -1]], np.float32))

    assert read_heads(path)["record"].probabilities(found) == pytest.approx([1 / (1 + np.exp(-0.5))])
