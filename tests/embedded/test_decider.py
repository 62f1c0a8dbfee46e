from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strands_gated_memory.core.questions import Answer, Decider, NoAnswer, Noul, Question, State, checked
from strands_gated_memory.core.wordings import GATE_CRITERIA, RECORD_CRITERIA, ROUTE_CRITERIA
from strands_gated_memory.embedded.decider import EmbeddedDecider

ABSTAINED = NoAnswer("abstained")

GATE = GATE_CRITERIA.question()


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
    assert decider.model_id == "embedded-3"


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
    ["", " ", "😀😀😀", "hi", "What should I cook? " * 80, "\x00\ud800 ok", "42 + 1", "\n\n?"],
)
def test_any_message_gets_probabilities(decider: EmbeddedDecider, message: str) -> None:
    """Empty, long, broken: an answer within 0..1 to every question."""
    questions = {
        "gate": GATE,
        "0": ROUTE_CRITERIA.question("facts about the user"),
        "1": RECORD_CRITERIA.question("The user is vegetarian."),
        "2": RECORD_CRITERIA.question(""),
    }

    answers = decider.decide(state(message), questions)

    assert set(answers) == set(questions)
    assert all(0 <= p(checked(answers[key], questions[key])) <= 1 for key in questions)


def test_a_message_in_another_language_abstains_from_all(decider: EmbeddedDecider) -> None:
    """The pipeline then searches as if there were no gate."""
    questions = {
        "gate": GATE,
        "0": ROUTE_CRITERIA.question("facts"),
        "1": RECORD_CRITERIA.question("The user is vegetarian."),
    }

    answers = decider.decide(state("Welche Schuhgröße hat mein Sohn noch mal?"), questions)

    assert answers == dict.fromkeys(questions, ABSTAINED)


def test_a_record_in_another_language_abstains_alone(decider: EmbeddedDecider) -> None:
    """Only that record is kept unjudged."""
    foreign = RECORD_CRITERIA.question("El usuario prefiere el café sin azúcar.")

    answers = decider.decide(state("coffee?"), {"a": RECORD_CRITERIA.question("The user drinks tea."), "b": foreign})

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


NOTES = (
    "The index of the orders table grew last week. We rebuilt it twice. The planner picked a hash join. Statistics "
    "were stale on the customers table. Autovacuum had been off. We turned it on again. The bloat was about forty "
    "percent. A covering index helped most. Partial indexes helped for the queue. We measured it with pgbench. "
)
ELSEWHERE = (
    "The quarterly report was finished on Tuesday and sent to the auditors. It had forty pages and two appendices. "
    "The finance team met afterwards to talk about the figures. They agreed on a new template for the next one, with "
    "fewer tables. The printer on the third floor was out of toner again, so copies were late. "
)


@pytest.mark.parametrize("asked", ["So what can I cook for my daughter tonight?", "Which wine does my sister like?"])
@pytest.mark.parametrize(
    "form", ["{notes}{asked}", "{asked} {notes}", "{notes}{asked} {notes}", "{notes}{notes}{asked}"]
)
def test_a_question_is_read_wherever_it_stands_in_a_long_message(
    decider: EmbeddedDecider, form: str, asked: str
) -> None:
    """First, in the middle or last among twenty sentences about something else."""
    message = form.format(notes=NOTES, asked=asked)

    assert p(decider.decide(state(message), {"g": GATE})["g"]) >= decider.thresholds.gate


def test_a_long_message_may_still_ask_for_nothing(decider: EmbeddedDecider) -> None:
    """Reading in parts does not open the gate for every long message."""
    message = NOTES + "What is a covering index?"

    assert p(decider.decide(state(message), {"g": GATE})["g"]) < decider.thresholds.gate


def test_the_gate_abstains_when_most_of_a_message_is_not_read(decider: EmbeddedDecider) -> None:
    """What was asked may stand in the rest, so the pipeline searches; the records are judged all the same."""
    questions = {"g": GATE, "r": RECORD_CRITERIA.question("The user is vegan.")}

    answers = decider.decide(state(NOTES * 10), questions)

    assert answers["g"] == ABSTAINED
    assert isinstance(answers["r"], Noul)


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ("The user must not have peanuts.", "What should I cook tonight?"),
        ("The user is vegan.", "Which restaurant should I book for Friday?"),
        ("The user is a wheelchair user.", "Find me a hotel for the weekend."),
    ],
)
def test_a_fact_counts_wherever_it_stands_in_a_long_record(decider: EmbeddedDecider, fact: str, message: str) -> None:
    """First or last in a record of 300 characters about something else, it gets most of what it gets alone."""
    questions = {
        "alone": RECORD_CRITERIA.question(fact),
        "first": RECORD_CRITERIA.question(f"{fact} {ELSEWHERE}"),
        "last": RECORD_CRITERIA.question(ELSEWHERE + fact),
        "without": RECORD_CRITERIA.question(ELSEWHERE),
    }

    chances = {key: p(answer) for key, answer in decider.decide(state(message), questions).items()}

    assert min(chances["first"], chances["last"]) >= 0.5 * chances["alone"] > chances["without"]
    assert decider.counted_part(state(message), ELSEWHERE + fact).endswith(fact)


def test_a_record_as_long_as_the_service_holds_is_read_to_its_end(decider: EmbeddedDecider) -> None:
    """Sixteen thousand characters, the fact last."""
    filling = ELSEWHERE * (16_000 // len(ELSEWHERE))
    message = state("What should I cook tonight?")
    long = {"fact": filling + "The user must not have peanuts. " * 3, "none": filling}

    chances = decider.decide(message, {key: RECORD_CRITERIA.question(text) for key, text in long.items()})

    assert p(chances["fact"]) > 2 * p(chances["none"])


def test_what_is_too_long_for_one_request_is_left_unjudged(decider: EmbeddedDecider) -> None:
    """A request's cost is bounded: long records beyond it are told apart, short ones are judged all the same."""
    questions = {str(n): RECORD_CRITERIA.question(f"{n} {ELSEWHERE * 50}") for n in range(8)}
    questions["short"] = RECORD_CRITERIA.question("The user is vegan.")

    answers = decider.decide(state("What should I cook tonight?"), questions)

    assert isinstance(answers["0"], Noul)
    assert answers["7"] == NoAnswer("too_long")
    assert isinstance(answers["short"], Noul)


@pytest.mark.parametrize(
    "message",
    [
        "whats my name again?",
        "the same as always please",
        "do you still know who I am",
        "you know what i like, order it",
        "what did we say about the boiler",
    ],
)
def test_needs_without_a_name_open(decider: EmbeddedDecider, message: str) -> None:
    """What points at something known opens the gate as a first message too."""
    assert p(decider.decide(state(message), {"g": GATE})["g"]) >= decider.thresholds.gate


@pytest.mark.parametrize("message", ["ok", "thanks", "hi", "lol", "morning!", "haha nice one", "thx mate", "cool cool"])
def test_small_talk_closes(decider: EmbeddedDecider, message: str) -> None:
    """However short it is, English small talk needs no search."""
    assert p(decider.decide(state(message), {"g": GATE})["g"]) < decider.thresholds.gate


@pytest.mark.parametrize(
    "message",
    [
        "mujhe kya khana chahiye",
        "saya lapar",
        "was soll ich heute cook",
        "kannst du mir nochmal sagen what my locker code is",
        "koi acchi film batao yaar aaj raat ke liye",
        "wapi daktari wangu",
    ],
)
def test_what_is_not_surely_english_is_not_decided(decider: EmbeddedDecider, message: str) -> None:
    """Short, mixed or romanised text in another language never closes the gate or drops a record."""
    questions = {"g": GATE, "r": RECORD_CRITERIA.question("The user is vegan.")}

    assert decider.decide(state(message), questions) == dict.fromkeys(questions, ABSTAINED)


def test_more_than_one_exchange_counts(decider: EmbeddedDecider) -> None:
    """What was said two exchanges before the message makes a difference; a fourth exchange is not read."""
    last = ("Sounds good.", "Great.")
    cooking = ("What should I cook for my sister?", "She liked the lentil curry last time.")
    engines = ("How does a diesel engine work?", "It ignites fuel by compression.")

    def gate(*previous: str) -> float:
        return p(decider.decide(state("And what else?", *previous), {"g": GATE})["g"])

    assert abs(gate(*cooking, *last) - gate(*engines, *last)) > 0.01
    assert gate(*cooking, *last, *last, *last) == gate(*engines, *last, *last, *last)


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
    questions = {"gate": GATE, "0": RECORD_CRITERIA.question("The user does not eat fish.")}
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
            "diet": RECORD_CRITERIA.question("The user is vegetarian and allergic to peanuts."),
            "car": RECORD_CRITERIA.question("The user's car is serviced at Hansen's garage."),
        },
    )

    assert p(answers["diet"]) > p(answers["car"])


def test_an_answer_does_not_depend_on_the_other_questions(decider: EmbeddedDecider) -> None:
    """Alone or among fifty records, a record gets the same probability."""
    fresh = EmbeddedDecider()
    mine = RECORD_CRITERIA.question("The user runs on Tuesdays at six.")
    others = {str(n): RECORD_CRITERIA.question(f"The user has {n} plants. " * (n % 7 + 1)) for n in range(50)}

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

    with pytest.raises(ValueError, match="format 99; this version reads format 2"):
        EmbeddedDecider(heads=path)


def test_package_data_stays_small() -> None:
    """The wheel carries at most 30 MB of model."""
    from strands_gated_memory.embedded.encoder import DATA

    assert sum(path.stat().st_size for path in DATA.iterdir()) <= 30_000_000
