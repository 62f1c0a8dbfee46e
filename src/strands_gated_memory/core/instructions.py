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

_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        # Setting aside what the assistant has been told, or bringing it out.
        rf"\b(?:ignore|disregard|forget|override|bypass|overrule|discard|drop)\b(?:\s+{_EARLIER}\b){{1,6}}\s+{_ORDERS}\b",
        r"\b(?:ignore|disregard|forget)\s+(?:everything|anything|all|what)\b.{0,30}\b(?:above|before|previous(?:ly)?|told|said|instructed)\b",
        rf"\b(?:reveal|print|show|repeat|output|leak|disclose|display|expose)\b.{{0,30}}\b(?:system|hidden|initial|secret|developer)\s+{_ORDERS}\b",
        # Roles: markers of a chat format, a new identity, a heading that claims authority.
        r"<\|?\s*/?\s*(?:im_start|im_end|system|assistant|user|developer|instructions?)\b[^>]{0,40}>",
        r"\[/?(?:inst|sys(?:tem)?|assistant)\]|<<sys>>",
        r"(?:^|[\n.!?:;\"'#*\-\s])(?:system|developer|assistant|admin(?:istrator)?)(?:\s+(?:message|prompt|override|note|notice|instructions?|command))?\s*[:>]\s*\S+",
        r"\b(?:new|updated|important|urgent|hidden|secret|special)\s+(?:system\s+)?(?:instructions?|directives?)\b.{0,40}(?::|\bfor\s+(?:the|you)\b)",
        rf"\byou\s+are\s+(?:now|no\s+longer|from\s+now\s+on)\b|\bfrom\s+now\s+on\b.{{0,20}}\b(?:you|{_ASSISTANT})\b",
        r"\b(?:act|behave|respond|pretend)\s+(?:as\s+(?:if|though)\s+you|to\s+be\s+(?:an?|the)\s)|\bact\s+as\s+(?:an?\s+)?(?:unrestricted|uncensored|admin|root|dan\b)",
        r"\b(?:developer|jailbreak|god|dan|debug|sudo)\s+mode\b",
        # Orders addressed to the assistant.
        rf"(?:^|[\n.!?:;,]\s*)(?:dear\s+|hey\s+|attention,?\s+|note\s+to\s+(?:the\s+|self,?\s+)?)?{_ASSISTANT}\s*[,:]\s*(?:please\s+)?(?:you\b|do\b|don't\b|never\b|always\b|ignore\b|send\b|say\b|tell\b|call\b|reply\b|answer\b|include\b|recommend\b|must\b|use\b)",
        rf"\b(?:the\s+)?{_ASSISTANT}\s+(?:must|shall|has\s+to|is\s+(?:required|instructed|ordered)\s+to)\s+(?!be\s+told)",
        r"\byou\s+(?:must|shall|have\s+to|are\s+(?:required|instructed|ordered)\s+to)\s+(?:always\s+|never\s+|not\s+|now\s+|immediately\s+)*(?:ignore|obey|comply|follow|reveal|send|forward|call|invoke|execute|run|transfer|recommend|answer|respond|reply|say|tell|include|output|approve|delete|email|click|visit|use|state|pretend)\b",
        r"\b(?:do\s+not|don't|never)\s+(?:tell|inform|mention|reveal|disclose|warn|alert)\b.{0,30}\b(?:the\s+)?user\b",
        r"\b(?:without|before)\s+(?:telling|asking|informing|notifying|confirming\s+with)\s+the\s+user\b",
        # Acting: tools, addresses, data sent elsewhere.
        r"\b(?:call|invoke|run|execute|use)\s+(?:the\s+)?[`'\"]?[a-z_]+[`'\"]?\s+(?:tool|function|command)\b",
        r"\b(?:send|forward|post|upload|exfiltrate|transmit|e-?mail)\b.{0,60}\b(?:to|at)\s+(?:https?://|www\.|\S+@\S+\.\w)",
        r"\b(?:append|include|add|embed|insert|put)\b.{0,40}\b(?:link|url|image|https?://|markdown)\b.{0,60}\b(?:in|to|at\s+the\s+end\s+of|into)\s+(?:every|all|each|your|the)\s+(?:answers?|repl(?:y|ies)|responses?|messages?|outputs?)\b",
        r"\b(?:always|only|never)\s+(?:say|answer|respond|reply|recommend|output)\b.{0,60}\bregardless\b|\bregardless\s+of\s+what\s+(?:the\s+)?user\b",
        r"\bin\s+(?:every|all|each)\s+(?:your\s+|of\s+your\s+|future\s+)*(?:answers?|repl(?:y|ies)|responses?)\b.{0,10}[,:]?\s*(?:always\s+)?(?:say|include|mention|recommend|add|append|promote|insert)\b",
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
    plain = re.sub(r"[ \t\u00a0]+", " ", plain)
    return any(pattern.search(plain) for pattern in _PATTERNS)
