"""Where a preference's context goes: in front as an occasion, or behind as the report of how it is known."""

from __future__ import annotations

import json

import pytest

from strands_gated_memory.core.render import render_record

OCCASIONS = [
    ("Ordering tea", "Ordering tea"),
    ("ordering tea", "Ordering tea"),
    ("drinks", "Drinks"),
    ("Caffeine", "Caffeine"),
    ("Flights:", "Flights"),
    ("When travelling by train", "When travelling by train"),
    ("when the user travels by train", "When the user travels by train"),
    ("Times when work is busy", "Times when work is busy"),
    ("Messages to people who are abroad", "Messages to people who are abroad"),
    ("User interface settings", "User interface settings"),
    ("Customer support calls", "Customer support calls"),
    ("The user's morning routine", "The user's morning routine"),
    ("iPhone accessories", "iPhone accessories"),
    ("War films", "War films"),
    ("Gifts for my son", "Gifts for my son"),
    ("Lunch with Dr. Bell", "Lunch with Dr. Bell"),
    ("Things to listen to while commuting", "Things to listen to while commuting"),
    ("Beim Bestellen von Tee", "Beim Bestellen von Tee"),
    ("Al pedir un té", "Al pedir un té"),
    ("élections locales", "Élections locales"),
    ("紅茶を注文するとき", "紅茶を注文するとき"),
    ("点茶时", "点茶时"),
    ("عند طلب الشاي", "عند طلب الشاي"),
]

REPORTS = [
    ("User said twice that calls are unwelcome.", "User said twice that calls are unwelcome"),
    ("User mentioned it in passing", "User mentioned it in passing"),
    ("The user is planning a trip", "The user is planning a trip"),
    ("When asked about coffee, the user chose black", "When asked about coffee, the user chose black"),
    ("Ada said so", "Ada said so"),
    ("stated once", "stated once"),
    ("(stated once)", "stated once"),
    ("Mentioned during onboarding", "Mentioned during onboarding"),
    ("based on three orders", "based on three orders"),
    ("Orders tea daily. Never coffee", "Orders tea daily. Never coffee"),
    ("Is it so?", "Is it so?"),
    ("Who knows...", "Who knows..."),
    ("Der Nutzer fragt wiederholt nach veganen Rezepten.", "Der Nutzer fragt wiederholt nach veganen Rezepten"),
    ("Die Nutzerin sagt es oft", "Die Nutzerin sagt es oft"),
    ("El usuario lo pidió dos veces.", "El usuario lo pidió dos veces"),
    ("L'utilisateur l'a dit deux fois", "L'utilisateur l'a dit deux fois"),
    ("O usuário disse isso", "O usuário disse isso"),
    ("L'utente lo ha detto", "L'utente lo ha detto"),
    ("Пользователь сказал дважды", "Пользователь сказал дважды"),
    ("ユーザーは二回そう言った。", "ユーザーは二回そう言った"),
    ("用户多次提到", "用户多次提到"),
    ("사용자가 두 번 말했다", "사용자가 두 번 말했다"),
    ("المستخدم قال ذلك مرتين", "المستخدم قال ذلك مرتين"),
]


def rendered(context: str) -> str:
    return render_record(json.dumps({"context": context, "preference": "No milk"}))


@pytest.mark.parametrize(("context", "shown"), OCCASIONS)
def test_occasion(context: str, shown: str) -> None:
    """A context that names an occasion comes first, its first letter a capital."""
    assert rendered(context) == f"{shown}: No milk"


@pytest.mark.parametrize(("context", "shown"), REPORTS)
def test_report(context: str, shown: str) -> None:
    """A context that reports how the preference is known follows in brackets, without its full stop."""
    assert rendered(context) == f"No milk ({shown})"
