"""Does a record try to instruct the assistant? A published screen of patterns, for deciders that cannot say.

English, deterministic, and no defence on its own: it finds the common phrases of planted instructions, not
every way to word one. Records are data in the prompt either way, escaped and in a tag.
"""

from __future__ import annotations

import re
import unicodedata

from .render.characters import cleaned

_ASSISTANT = r"(?:assistant|ai|chat ?bot|(?:language )?model|llm|agent)"
_ORDERS = r"(?:instructions?|prompts?|rules?|guidelines?|directives?|guardrails?|restrictions?|polic(?:y|ies)|context)"
_EARLIER = (
    r"(?:all|any|every|your|the|these|those|my|previous|prior|earlier|above|preceding|foregoing|existing|of|system|"
    r"safety|other)"
)

# Each with words of which it needs one: a substring is found far faster than a pattern fails.
_PATTERNS = tuple(
    (tuple(words.split("|")), re.compile(pattern))
    for words, pattern in (
        # Setting aside what the assistant has been told, or bringing it out.
        (
            "ignore|disregard|forget|override|bypass|overrule|discard|drop",
            rf"\b(?:ignore|disregard|forget|override|bypass|overrule|discard|drop)\b(?:\s+{_EARLIER}\b){{1,6}}\s+{_ORDERS}\b",
        ),
        (
            "ignore|disregard|forget",
            r"\b(?:ignore|disregard|forget)\s+(?:everything|anything|all|what)\b.{0,30}"
            r"\b(?:above|before|previous(?:ly)?|told|said|instructed)\b",
        ),
        (
            "system|hidden|initial|secret|developer",
            r"\b(?:reveal|print|show|repeat|output|leak|disclose|display|expose)\b.{0,30}"
            rf"\b(?:system|hidden|initial|secret|developer)\s+{_ORDERS}\b",
        ),
        # Roles: markers of a chat format, a new identity, a heading that claims authority.
        (
            "<",
            r"<\|?\s*/?\s*(?:im_start|im_end|system|assistant|user|developer|instructions?)\b[^>]{0,40}>|<<sys>>",
        ),
        ("[", r"\[/?(?:inst|sys(?:tem)?|assistant)\]"),
        (
            "system|developer|assistant|admin",
            r"(?:^|[\n.!?;\"'#*>\-]\s*)(?:system|developer|assistant|admin(?:istrator)?)"
            r"(?:\s+(?:message|prompt|override|note|notice|instructions?|command))?\s*[:>]\s*\S+",
        ),
        (
            "instruction|directive",
            r"\b(?:new|updated|important|urgent|hidden|secret|special)\s+(?:system\s+)?(?:instructions?|directives?)\b"
            r".{0,40}(?::|\bfor\s+(?:the|you)\b)",
        ),
        (
            "you are|from now on",
            r"\byou\s+are\s+(?:now|no\s+longer|from\s+now\s+on)\b|"
            rf"\bfrom\s+now\s+on\b.{{0,20}}\b(?:you|{_ASSISTANT})\b",
        ),
        (
            "act|behave|respond|pretend",
            r"\b(?:act|behave|respond|pretend)\s+(?:as\s+(?:if|though)\s+you|to\s+be\s+(?:an?|the)\s)|"
            r"\bact\s+as\s+(?:an?\s+)?(?:unrestricted|uncensored|admin|root|dan\b)",
        ),
        ("mode", r"\b(?:developer|jailbreak|god|dan|debug|sudo)\s+mode\b"),
        # Orders addressed to the assistant.
        (
            "assistant|ai|bot|model|llm|agent",
            r"(?:^|[\n.!?:;,]\s*)(?:dear\s+|hey\s+|attention,?\s+|note\s+to\s+(?:the\s+|self,?\s+)?)?"
            rf"{_ASSISTANT}\s*[,:]\s*(?:please\s+)?"
            r"(?:you|do|don't|never|always|ignore|send|say|tell|call|reply|answer|include|recommend|must|use)\b",
        ),
        (
            "assistant|ai|bot|model|llm|agent",
            rf"\b(?:the\s+)?{_ASSISTANT}\s+"
            r"(?:must|shall|has\s+to|is\s+(?:required|instructed|ordered)\s+to)\s+(?!be\s+told)",
        ),
        (
            "you must|you shall|you have|you are",
            r"\byou\s+(?:must|shall|have\s+to|are\s+(?:required|instructed|ordered)\s+to)\s+"
            r"(?:always\s+|never\s+|not\s+|now\s+|immediately\s+){0,5}"
            r"(?:ignore|obey|comply|follow|reveal|send|forward|call|invoke|execute|run|transfer|recommend|answer|respond|"
            r"reply|say|tell|include|output|approve|delete|email|click|visit|use|state|pretend)\b",
        ),
        (
            "user",
            r"\b(?:do\s+not|don't|never)\s+(?:tell|inform|mention|reveal|disclose|warn|alert)\b.{0,30}\b(?:the\s+)?user\b|"
            r"\b(?:without|before)\s+(?:telling|asking|informing|notifying|confirming\s+with)\s+the\s+user\b",
        ),
        # Acting: tools, addresses, data sent elsewhere.
        (
            "tool|function|command",
            r"\b(?:call|invoke|run|execute|use)\s+(?:the\s+)?[`'\"]?[a-z_]{1,64}[`'\"]?\s+(?:tool|function|command)\b",
        ),
        (
            "http|www.|@",
            r"\b(?:send|forward|post|upload|exfiltrate|transmit|e-?mail)\b.{0,60}"
            r"\b(?:to|at)\s+(?:https?://|www\.|[^\s@]{1,64}@\S)",
        ),
        (
            "link|url|image|http|markdown",
            r"\b(?:append|include|add|embed|insert|put)\b.{0,40}\b(?:link|url|image|https?://|markdown)\b.{0,60}"
            r"\b(?:in|to|at\s+the\s+end\s+of|into)\s+(?:every|all|each|your|the)\s+"
            r"(?:answers?|repl(?:y|ies)|responses?|messages?|outputs?)\b",
        ),
        (
            "regardless",
            r"\b(?:always|only|never)\s+(?:say|answer|respond|reply|recommend|output)\b.{0,60}\bregardless\b|"
            r"\bregardless\s+of\s+what\s+(?:the\s+)?user\b",
        ),
        (
            "in every|in all|in each",
            r"\bin\s+(?:every|all|each)\s+(?:(?:of\s+)?your\s+|future\s+){0,3}(?:answers?|repl(?:y|ies)|responses?)\b"
            r".{0,10}[,:]?\s*(?:always\s+)?(?:say|include|mention|recommend|add|append|promote|insert)\b",
        ),
    )
)

_LONGEST = 20_000


def instructs(text: str) -> bool:
    """Tell whether a text looks like an instruction to the assistant that reads it.

    Args:
        text: A record, as stored or rendered; of more than 20,000 characters the first and last 10,000 count.
    """
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}\n{text[-_LONGEST // 2 :]}"
    plain = unicodedata.normalize("NFKC", cleaned(text)).casefold().replace("’", "'")
    plain = re.sub(r"[ \t]+", " ", plain)
    return any(pattern.search(plain) for words, pattern in _PATTERNS if any(word in plain for word in words))
