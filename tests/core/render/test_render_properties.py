"""What holds for every string: no exception, one clean line, a fixed point, meaning kept, linear time."""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strands_gated_memory.core.render import _DEPTH, _ROUNDS, _SENTENCE, _rendered_once, render_record
from strands_gated_memory.core.render.characters import cleaned, inert

KEYS = [
    *("context", "preference", "categories", "language", "fact", "facts", "value", "text", "content", "summary"),
    *("situation", "intent", "assessment", "justification", "reflection", "turns", "user_intent", "finding"),
    *("title", "use_cases", "hints", "confidence", "name"),
]
PIECES = [
    *("<topic", "<topic name=", '<topic name="', '">', "</topic>", "<language>", "</language>", "<summary>"),
    *("<situation>", "</situation>", "&lt;", "&amp;", "&quot;", "&gt;", "&#8238;", "&amp;lt;topic&amp;gt;"),
    *("{", "}", "[", "]", '"', "\\", '\\"', ":", ",", '{"fact": "', '{"context": "', '", "preference": "', '"}'),
    *("# ", "## ", "- ", "* ", "> ", "1. ", "```", "```json", "~~~", "**", "|", "|---|---|", "---", "===", "・"),
    *("\n", "\t", " ", "null", "N/A", "none", "Tea", "No", "茶", "5", "é", "User said", "☕"),
    *("\u200d", "\u200b", "\u202e", "\ufe0f", "\x00", "\x1b[0m", "\ud83d", "\ude00"),
    *("。", ".", "; ", "(", ")", "=", "'"),
]

anything = st.text(st.characters(), max_size=200)  # surrogates included
mixed = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=30).map("".join)
keys = st.sampled_from(KEYS) | st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | mixed | st.sampled_from(["Yes", "stated once"])
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=12,
)
encoded = (
    values.map(json.dumps)
    | values.map(json.dumps).map(json.dumps)
    | values.map(lambda value: json.dumps([json.dumps(value)]))
)
topics = st.lists(st.tuples(mixed, mixed), max_size=4).map(
    lambda pairs: "\n".join(f'<topic name="{name}">{text}</topic>' for name, text in pairs)
)
markdown = st.lists(
    st.tuples(st.sampled_from(["# ", "## ", "- ", "  - ", "> ", "1. ", "| ", "", "```\n", "k: "]), mixed), max_size=8
).map(lambda lines: "\n".join(mark + text for mark, text in lines))
records = anything | mixed | encoded | topics | markdown
words = st.text("abcdefgh éüß茶خ0123456789", min_size=1, max_size=20).map(lambda text: f"w{text}".strip())

starts = st.sampled_from(["\n- ", "\n* ", "\n• ", "\n  ", "\n1. ", "\n\n", "\n", "\t", ": ", ",", ". "])
prose = st.lists(starts | st.text(max_size=6), max_size=15).map("".join)

signs = 'tea null N/A none ~~~ ``` **b** < { [ " # - : | &lt; _ . ;'.split()
plain = st.lists(st.sampled_from(signs) | st.text(st.characters(max_codepoint=126), max_size=3)).map(
    lambda parts: f"w{' '.join(' '.join(parts).split())}".strip()
)

every_record = settings(max_examples=250, deadline=None)


@every_record
@given(records)
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example("[" * 100_000 + '"tea"' + "]" * 100_000)
@example("[" + "9" * 5000 + "]")
@example("[NaN, Infinity, -Infinity]")
@example("\ud800")
@example("\udc00\ud800 tea")
def test_one_clean_line(text: str) -> None:
    """Any string gives one line, without controls, surrogates, direction marks or stray space."""
    line = render_record(text)

    assert line == " ".join(line.split())
    assert line == cleaned(line)
    assert not {unicodedata.category(character) for character in line} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(line) & set("\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u00ad")
    line.encode("utf-8")


@every_record
@given(records)
@example('<topic name="&lt;topic name=&quot;a&quot;&gt;b">&lt;topic&gt;c</topic>')
@example('"# \\"- {\\\\\\"fact\\\\\\": \\\\\\"x\\\\\\"}\\""')
def test_rendering_again_changes_nothing(text: str) -> None:
    """A rendered line renders to itself."""
    line = render_record(text)

    assert render_record(line) == line


@every_record
@given(records)
def test_last_resort_is_stable(text: str) -> None:
    """Text that never settles is stripped of every mark, and that settles, with its letters and digits kept."""
    bare = inert(text)

    assert _rendered_once(bare) in (bare, "")
    assert [c for c in bare if c.isalnum()] == [c for c in cleaned(text) if c.isalnum()]


@every_record
@given(st.from_regex(_SENTENCE, fullmatch=True) | plain)
@example("Null.")
@example("N/A, none; nil")
@example("https://example.org/a_b?c=d#e")
@example("a | b |--| c")
@example('x ```json {"fact": "tea"}')
def test_a_plain_sentence_is_rendered_as_by_its_shape(text: str) -> None:
    """What is passed on without a look at shapes is what that look would have given."""
    assert render_record(text) == _rendered_once(text)


def test_shapes_within_shapes_end() -> None:
    """A text that holds more shapes inside each other than are followed still gives a stable line."""
    text = "tea"
    for _ in range(_ROUNDS * _DEPTH + 3):
        text = f"<topic>{text.replace('&', '&amp;').replace('<', '&lt;')}</topic>"
    line = render_record(text)

    assert "tea" in line
    assert render_record(line) == line


@every_record
@given(prose)
def test_prose_keeps_letters_and_digits(text: str) -> None:
    """Lines and lists lose no letter and no digit, only their marks."""
    text = f"Note {text.translate(dict.fromkeys(map(ord, '<[{`|~#>')))}"
    line = render_record(text)

    assert [c for c in line if c.isalnum()] == [c for c in cleaned(text) if c.isalnum()]


@every_record
@given(mixed)
@example("<situation><language>")
@example("none\n```json> ")
def test_meaning_is_never_lost_whole(text: str) -> None:
    """A record that holds a word outside of tags and keys never renders to nothing."""
    assert render_record(f"{text} tea 1999")
    assert "1999" in render_record(f"tea 1999 {text}")


@every_record
@given(words, words, words)
def test_known_shapes_keep_their_texts(first: str, second: str, third: str) -> None:
    """Every text that a known shape carries is in the line."""

    def holds(record: object, *texts: str) -> None:
        for source in (json.dumps(record), json.dumps([record]), json.dumps(json.dumps(record))):
            line = render_record(source).casefold()
            assert all(" ".join(text.split()).casefold() in line for text in texts), (source, line)

    holds({"context": first, "preference": second, "categories": [third]}, first, second)
    holds({"fact": first, "language": second}, first)
    holds({"situation": first, "intent": second, "reflection": third}, first, second, third)
    holds({"title": first, "use_cases": second, "hints": [third]}, first, second, third)
    holds({"turns": [{"situation": first, "action": second, "thought": third}]}, first, second, third)
    holds({"zone": {"inner": [first, {"deep": second}]}, "other": third}, first, second, third)
    holds(f'<topic name="{first}">{second}</topic><topic name="{third}"></topic>', first, second, third)


@every_record
@given(
    st.integers(1, 40), st.sampled_from([("[", "]"), ('{"key": ', "}"), ('{"fact": ', "}"), ('[{"situation": ', "}]")])
)
def test_depth_loses_nothing(depth: int, brackets: tuple[str, str]) -> None:
    """What lies deeper than shapes are followed is still in the line."""
    opening, closing = brackets

    assert "tea" in render_record(opening * depth + '"tea"' + closing * depth)


@pytest.mark.parametrize(
    "brackets", [('{"turns": ', "}"), ('{"turns": [', "]}"), ('[{"steps": ', "}]"), ('{"situation": ', "}")]
)
def test_a_record_deeper_than_the_stack_is_rendered(brackets: tuple[str, str]) -> None:
    """Steps within steps, as deep as JSON can be read, are a line like all others."""
    opening, closing = brackets
    line = render_record(opening * 400 + '"tea"' + closing * 400)

    assert "tea" in line
    assert render_record(line) == line


@given(st.integers(1, 6), words)
def test_encoded_several_times(times: int, text: str) -> None:
    """JSON that was encoded again and again is the record that it was."""
    source = json.dumps({"fact": text})
    for _ in range(times):
        source = json.dumps(source)

    assert render_record(source) == render_record(text)


GROWING: dict[str, Callable[[int], str]] = {
    "words": lambda n: "word " * n,
    "brackets": lambda n: "[" * n,
    "objects": lambda n: '{"a":' * n,
    "encoded": lambda n: '"' + '\\"' * n + '"',
    "topics": lambda n: '<topic name="a">b</topic>' * n,
    "open_names": lambda n: '<topic name="' * n,
    "open_tags": lambda n: "<topic " * n,
    "equals": lambda n: "<topic a" + " =" * n + ">",
    "entities": lambda n: "<topic>" + "&amp;" * n,
    "nested_entities": lambda n: "<topic>&" + "amp;" * n + "lt;topic>",
    "stars": lambda n: "**" * n,
    "open_bold": lambda n: "** a" * n,
    "ticks": lambda n: "`" * n,
    "fences": lambda n: "```a\n" * n,
    "blank_lines": lambda n: "\n" * n,
    "lines": lambda n: "a\n" * n,
    "bullets": lambda n: "- a\n" * n,
    "headings": lambda n: "# a\n" * n,
    "deep_headings": lambda n: "# a\n## b\n### c\n" * n,
    "underlines": lambda n: "===\n" * n,
    "marks": lambda n: "- " * n,
    "spaces": lambda n: "a" + " " * n + "b",
    "bars": lambda n: "|a" * n,
    "table": lambda n: "|a|b|\n|--|--|\n" + "|1|2|\n" * n,
    "wide_table": lambda n: "|a" * n + "|\n|--|--|\n" + "|1|2|\n" * n,
    "long_table_head": lambda n: "|" + "a" * n + "|b|\n|--|--|\n" + "|1|2|\n" * n,
    "csv": lambda n: "a,b\n" * n,
    "pairs": lambda n: "a: b\n" * n,
    "wide_object": lambda n: json.dumps({f"k{i}": i for i in range(n)}),
    "long_list": lambda n: json.dumps(list(range(n))),
    "json_lines": lambda n: '{"fact":"a"}\n' * n,
    "deep_list": lambda n: "[" * 500 + "1," * n + "1" + "]" * 500,
    "long_context": lambda n: json.dumps({"context": "when a " * n, "preference": "b"}),
    "joiners": lambda n: "\u200d" * n,
    "selectors": lambda n: "\ufe0f" * n,
    "flags": lambda n: "\U0001f3f4" * n,
    "escapes": lambda n: "\x1b[" * n + "0" * n,
    "surrogates": lambda n: "\ud800" * n,
}


def cpu_seconds(text: str) -> float:
    start = time.process_time()
    render_record(text)
    return time.process_time() - start


@pytest.mark.parametrize("grow", GROWING.values(), ids=GROWING.keys())
def test_time_grows_with_size(grow: Callable[[int], str]) -> None:
    """Eight times the text takes about eight times the CPU; a square would take sixty-four times."""
    small = min(cpu_seconds(grow(2000)) for _ in range(3))

    assert any(cpu_seconds(grow(16_000)) < 24 * max(small, 0.002) for _ in range(3))


@pytest.mark.parametrize("grow", GROWING.values(), ids=GROWING.keys())
def test_a_line_is_hardly_longer_than_its_source(grow: Callable[[int], str]) -> None:
    """No shape repeats a label so often that the line outgrows the record."""
    text = grow(5000)

    assert len(render_record(text)) <= 4 * len(text) + 100
