from __future__ import annotations

import pytest

from strands_gated_memory.embedded.language import readable

from .language_cases import FOREIGN, READABLE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "ok cool",
        "Hiya",
        "Pho?",
        "42",
        "😀😀",
        "Book Noma for Søren",
        "pho or laksa?",
        "def f(x): return x",
        "Is this right? 'A minha filha é grávida.'",
        "RESERVE A TABLE",
        "d'you know what c'mon means",
        "sudo systemctl restart nginx",
        "a" * 20_000,
    ],
)
def test_english_and_too_little_to_tell_are_readable(text: str) -> None:
    """Short, mixed, code, numbers: the model may answer."""
    assert readable(text)


@pytest.mark.parametrize(
    "text",
    [
        "¿Qué me pido para cenar?",
        "Welche Schuhgröße hat mein Sohn noch mal?",
        "Obrigado, era isso mesmo!",
        "Come avevamo risolto l'errore del certificato?",
        "Wie funktioniert eine Wärmepumpe?",
        "WELCHE SCHUHGRÖSSE HAT MEIN SOHN",
        "Где я припарковался?",
        "私の歯医者の名前は何ですか",
        "ما اسم طبيب أسناني؟",
        "ok 私の歯医者の名前は何ですか",
    ],
)
def test_other_languages_are_not_readable(text: str) -> None:
    """A sentence in another language or script is left to the search."""
    assert not readable(text)


def test_the_measured_half_holds() -> None:
    """On the half that nothing was chosen on: at most 3 % false alarms, at most 10 % missed."""
    alarms = [text for text in READABLE[1::2] if not readable(text)]
    missed = [text for text in FOREIGN[1::2] if readable(text)]

    assert len(alarms) <= 0.03 * len(READABLE[1::2]), alarms
    assert len(missed) <= 0.10 * len(FOREIGN[1::2]), missed
