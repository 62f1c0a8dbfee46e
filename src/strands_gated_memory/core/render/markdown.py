"""Text of one or many lines, markdown or not, to one line.

Prose only loses its line breaks. Headings become labels of what follows, list items and other lines that stand
alone are parted by "; ", table rows become "column: cell, column: cell", fences vanish around their content. Marks
inside a line stay, bold apart, because `*`, `_` and back ticks also occur in paths, names and code.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .characters import one_line
from .json_text import Child
from .phrasing import SENTENCE_ENDS, joined, labelled

_MARKS = re.compile(r"(?:(?:[-*+•‣◦▪●∙>]|#{1,6})\s+|・\s*)+")
_NUMBERED = re.compile(r"\d{1,3}[.)]\s")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_FENCE_NAME = re.compile(r"\s*[\w+#.-]{0,20}\s*")
_PAIR = re.compile(r"[^\W\d_][^:：]{0,39}[:：](?:\s|$)")
_CSV_FIELD = re.compile(r",(?=\S)")
_BOLD = re.compile(r"(?<![A-Za-z0-9_*])\*\*(?=[^\s*])([^*]{0,2000})(?<=[^\s*])\*\*(?![A-Za-z0-9_*])")
_CLOSING_MARKS = re.compile(r"\s#{1,6}$")
_BAR = re.compile(r"(?<!\\)\|")
_RULE = frozenset("-*_= ")
_GOES_ON = tuple(SENTENCE_ENDS + ",:;-–，、：；(")
_MOST_GROWTH = 3
"""How many times as long as its text a table may become by naming the column of every cell."""


class _Line(NamedTuple):
    """One line, read."""

    text: str
    """"" for a break between paragraphs."""
    heading: int = 0
    """1 to 6 for a heading, 1 the highest; 0 for any other line."""
    item: bool = False
    """Whether it stands alone, so that "; " parts it from its neighbours."""
    indented: bool = False
    """Whether it may carry on the item above it."""


_BREAK = _Line("")


class _Layout(NamedTuple):
    """What holds for all lines of a text."""

    pairs: bool
    """Whether they are "key: value" lines."""
    separator: str
    """What parts the columns of each line: a tab, a comma, or "" when there are none."""


def render(text: str, child: Child) -> str:
    """Return the text as a line.

    Args:
        text: Cleaned text.
        child: Renders the content of a fence that holds JSON.
    """
    raw = text.splitlines()
    if len(raw) > 1:
        return one_line(_sections(_read(raw, child)))
    line = _without_fence(one_line(text))
    rest = _without_marks(line)
    # "- 5 degrees" and "> 5 kg" are values; a list of one item hardly begins with a number.
    return _without_bold(line if rest[:1].isdigit() and line[:1] in ("-", "+", ">") else rest)


def _read(raw: list[str], child: Child) -> list[_Line]:
    layout = _layout(raw)
    lines: list[_Line] = []
    start = 0
    while start < len(raw):
        line = raw[start]
        start += 1
        fence = _FENCE.match(line)
        if fence and _FENCE_NAME.fullmatch(fence[2]):
            closing = (end for end in range(start, len(raw)) if raw[end].lstrip().startswith(fence[1]))
            end = next(closing, len(raw))
            lines.extend(_fenced(raw[start:end], child))
            start = end + 1
        elif "|" in line and start < len(raw) and _is_under_a_head(raw[start]):
            end = next((end for end in range(start + 1, len(raw)) if "|" not in raw[end]), len(raw))
            rows = _rows(_without_bold(line), [_without_bold(row) for row in raw[start + 1 : end]])
            lines.extend(_Line(row, item=True) for row in rows)
            start = end
        elif set(line.strip()) == {"="} and lines and lines[-1].text:
            lines[-1] = _Line(lines[-1].text, heading=1)
        else:
            lines.append(_line(line, layout))
    return lines


def _layout(raw: list[str]) -> _Layout:
    filled = [line for line in raw if line.strip() and not _is_rule(line)]
    outer = [line for line in filled if not line[0].isspace() and not _MARKS.match(line)]
    pairs = len(outer) > 1 and all(_PAIR.match(line) for line in outer)
    separator = ""
    if len(filled) > 1 and not any(line.rstrip().endswith(tuple(SENTENCE_ENDS)) for line in filled):
        if all("\t" in line.strip() for line in filled):
            separator = "\t"
        elif len({len(_CSV_FIELD.findall(line)) for line in filled} | {0}) == 2:  # noqa: PLR2004 - one count, not 0
            separator = ","
    return _Layout(pairs, separator)


def _line(line: str, layout: _Layout) -> _Line:
    stripped = _without_fence(line.strip())
    if not stripped or _is_rule(stripped):
        return _BREAK
    text = _without_marks(stripped)
    marked = text != stripped
    if marked and stripped.startswith("#"):
        return _Line(_without_bold(_CLOSING_MARKS.sub("", text)), heading=len(stripped) - len(stripped.lstrip("#")))
    if layout.separator == "\t":
        text = ", ".join(filter(None, map(str.strip, text.split("\t"))))
    item = (marked and not stripped.startswith(">")) or bool(layout.separator) or bool(_NUMBERED.match(text))
    indented = line[0].isspace()
    return _Line(_without_bold(text), item=item or (layout.pairs and not indented), indented=indented)


def _fenced(raw: list[str], child: Child) -> list[_Line]:
    """Return the lines of a fence as they are, for code has its own marks; JSON goes to its handlers."""
    content = " ".join(raw).strip()
    if content.startswith(("{", "[")):
        content = child(content)
    return [_BREAK, _Line(content), _BREAK] if content else []


def _is_under_a_head(line: str) -> bool:
    """Tell whether a line is the rule under a table's head, such as `|---|:--:|`."""
    return "|" in line and "--" in line and set(line) <= set("|-: ")


def _rows(head: str, body: list[str]) -> list[str]:
    """Return one line per row of a table: without names where repeating them would make it several times longer."""
    columns = _cells(head)
    size = len(head) + sum(map(len, body))
    named = bool(body) and len(head) * len(body) <= _MOST_GROWTH * size
    lines = [] if named else [", ".join(filter(None, columns))]
    for row in body:
        cells = _cells(row)
        names = (columns if named else []) + [""] * len(cells)
        lines.append(", ".join(labelled(name, cell) for name, cell in zip(names, cells, strict=False) if cell))
    return lines


def _cells(line: str) -> list[str]:
    cells = _BAR.split(line.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _sections(lines: list[_Line]) -> str:
    """Put each heading in front of what stands under it."""
    parts: list[str] = []
    headings: list[_Line] = []
    body: list[_Line] = []

    def close() -> None:
        text = _flowing(body)
        for heading in reversed(headings):
            text = labelled(heading.text, text)
        parts.append(text)
        headings.clear()
        body.clear()

    for line in lines:
        if not line.heading:
            body.append(line)
            continue
        if any(other.text for other in body) or (headings and headings[-1].heading >= line.heading):
            close()
        headings.append(line)
    close()
    return joined(parts)


def _flowing(lines: list[_Line]) -> str:
    pieces: list[str] = []
    before = _BREAK
    broken = False
    for line in lines:
        if not line.text:
            broken = True
            continue
        if pieces:
            alone = broken or line.item or (before.item and not line.indented)
            pieces.append("; " if alone and not before.text.endswith(_GOES_ON) else " ")
        pieces.append(line.text)
        before = _Line(line.text, item=line.item or (before.item and line.indented and not broken))
        broken = False
    return "".join(pieces)


def _is_rule(line: str) -> bool:
    return len(line.strip()) > 2 and set(line) <= _RULE  # noqa: PLR2004 - three marks make a rule


def _without_fence(line: str) -> str:
    fence = _FENCE.match(line)
    if not fence:
        return line
    inner = fence[2].strip("`~ ")
    name, _, rest = inner.partition(" ")
    return rest if name.isalpha() and rest.startswith(("{", "[")) else inner


def _without_marks(line: str) -> str:
    marks = _MARKS.match(line)
    return line[marks.end() :] if marks else line


def _without_bold(line: str) -> str:
    return _BOLD.sub(r"\1", line)
