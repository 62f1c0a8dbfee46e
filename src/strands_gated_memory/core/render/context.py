"""Is a preference's context an occasion ("Ordering tea") or a report ("User said so twice.")?

A heuristic over surface signs, in the languages we know signs of. A wrong guess moves the context to the
other end of the line and loses nothing, so unknown languages count as occasions unless they end a sentence.
"""

from __future__ import annotations

import re

from .phrasing import ends_sentence

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_INNER_SENTENCE = re.compile(r"[^\W\d_]{4}[.!?]\s")
_SHORTEST_CAPITALISED = 3
_READ = 400  # characters; who speaks and whether it is a sentence shows early

_PEOPLE = re.compile(
    r"""(?:the\s+|this\s+)(?:user|customer|client|speaker)\b(?!['’-])|user\b(?!['’-])
    |(?:i|he|she|they|we)(?=\s|['’]\w)
    |(?:der|die|de)\s+(?:nutzer|benutzer|kund|gebruiker|klant)\w*|(?:be)?nutzer(?:in)?\b
    |(?:el|la|o|a)\s+(?:usuari|usuári|utilizador)\w*|(?:el|la|o)\s+client\w*|usuari[oa]\b|usuári[oa]\b
    |(?:l['’]|le\s+|la\s+)(?:utilisat|client)\w*|(?:l['’]|il\s+)(?:utente|cliente)
    |användaren|brugeren|brukeren|käyttäjä|użytkownik|uživatel|kullanıcı|pengguna|người\s+dùng
    |пользователь|користувач|ο\s+χρήστης|המשתמש|المستخدم|کاربر|उपयोगकर्ता
    |ユーザー?[はがもの]|利用者[はがも]|用户(?![界名体])|用戶(?![界名體])|使用者(?![界名])|사용자[는가이]?\s""",
    re.IGNORECASE | re.VERBOSE,
)
_COMPOUND = re.compile(
    r"(?:the\s+)?(?:user|customer|client)\s+"
    r"(?:accounts?|calls?|data|experience|groups?|guides?|interfaces?|interviews?|manuals?|meetings?|names?|onboarding"
    r"|profiles?|research|reviews?|satisfaction|service|settings|stories|support|testing|tests?|visits?)\b",
    re.IGNORECASE,
)


def _words_of(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text)]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EVIDENCE = _words(
    "stated said mentioned told inferred implied expressed confirmed explicitly explicit according based "
    "erwähnt gesagt laut mencionado dicho dijo según mentionné selon menzionato detto mencionou disse"
)
_LOWER_EVIDENCE = _EVIDENCE | _words(
    "asked noted observed requested repeated repeatedly reported indicated explained shared declared learned derived "
    "recorded seen heard once twice"
)
_SUBORDINATE = _words(
    "when whenever if while where that which who whose because since after before until unless "
    "wenn wann während falls als dass der cuando si mientras que quand lorsque quando se wanneer toen"
)
_FINITE = _words(
    "is are was were isn't aren't wasn't has had hasn't said says stated mentioned mentions asked asks told tells "
    "prefers preferred likes liked dislikes wants wanted wishes doesn't didn't does did won't can't cannot would "
    "ist sind hatte sagt sagte fragt fragte bevorzugt möchte erwähnte wünscht "
    "está están dijo pidió prefiere mencionó quiere tiene "
    "était préfère veut mentionne préférait "
    "é disse prefere mencionou quer "
    "è preferisce vuole "
    "zei vraagt heeft vindt föredrar sa foretrekker"
)
_FINITE_ENDINGS = ("ます", "です", "ません", "ている", "った", "した", "습니다", "했다", "한다", "입니다")


def is_occasion(context: str) -> bool:
    """Tell whether a context reads as a label in front of a preference.

    Args:
        context: One line, not empty.

    Returns:
        False when it closes or contains a sentence, begins with the user or with how the preference is
        known ("stated once"), or holds a finite verb outside a clause such as "when guests are here".
    """
    text = context[:_READ]
    if ends_sentence(context) or _INNER_SENTENCE.search(text) or context.endswith(_FINITE_ENDINGS):
        return False
    clauses = text.split(", ")
    if any(_PEOPLE.match(clause) and not _COMPOUND.match(clause) for clause in clauses):
        return False
    words = _words_of(text)
    if words and words[0].casefold() in (_LOWER_EVIDENCE if words[0][0].islower() else _EVIDENCE):
        return False
    return not has_finite_verb(text)


def capitalised(label: str) -> str:
    """Return a label with a capital, unless its first word is written in a way of its own ("iPhone", "ui")."""
    first_word = label.partition(" ")[0]
    first, second = label[:1], label[1:2]
    if len(first_word) < _SHORTEST_CAPITALISED or second.isupper() or len(first.upper()) != 1:  # ß has no capital
        return label
    return first.upper() + label[1:]


def has_finite_verb(text: str) -> bool:
    """Tell whether a text holds a verb that makes it a statement, outside a clause such as "when guests are here"."""
    for word in map(str.casefold, _words_of(text)):
        if word in _SUBORDINATE:
            return False
        if word in _FINITE:
            return True
    return False
