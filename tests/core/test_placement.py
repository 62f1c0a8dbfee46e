"""Which message of a model call is a copy of which message of the conversation, whatever others did to it."""

import copy

import pytest

from strands_gated_memory.core.placement import origins, place


def user(text, tracking_id=None):
    return {"role": "user", "content": [{"text": text}], **({"tracking_id": tracking_id} if tracking_id else {})}


def assistant(text, tracking_id=None):
    return {**user(text, tracking_id), "role": "assistant"}


CONVERSATION = [user("yes", "1"), assistant("fine", "2"), user("yes", "3"), assistant("ok", "4"), user("yes", "5")]


def bare(message, **changes):
    """Return a copy that has lost its tracking id, as Strands' own injectors make them."""
    return {"role": message["role"], "content": [*message["content"]], **changes}


@pytest.mark.parametrize(
    ("copies", "expected"),
    [
        pytest.param(CONVERSATION, [0, 1, 2, 3, 4], id="the same"),
        pytest.param(copy.deepcopy(CONVERSATION), [0, 1, 2, 3, 4], id="deep copies"),
        pytest.param(CONVERSATION[2:], [2, 3, 4], id="the oldest left out"),
        pytest.param([*CONVERSATION[:4], bare(CONVERSATION[4])], [0, 1, 2, 3, 4], id="the last one folded into"),
        pytest.param([bare(m) for m in CONVERSATION], [0, 1, 2, 3, 4], id="every tracking id lost"),
        pytest.param([bare(m) for m in CONVERSATION[2:]], [2, 3, 4], id="lost, and the oldest left out"),
        pytest.param([user("note"), *CONVERSATION], [None, 0, 1, 2, 3, 4], id="one put in front"),
        pytest.param([*CONVERSATION, user("note")], [0, 1, 2, 3, 4, None], id="one put behind"),
        pytest.param(
            [*CONVERSATION[:4], bare(CONVERSATION[4]), user("note")], [0, 1, 2, 3, 4, None], id="behind a fold"
        ),
        pytest.param(
            [user("[masked]") if m["role"] == "user" else m for m in CONVERSATION], [0, 1, 2, 3, 4], id="masked"
        ),
        pytest.param([user("something else")], [None], id="another conversation"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_a_copy_is_told_by_its_id_its_neighbours_or_its_blocks(copies, expected):
    assert origins(copies, CONVERSATION) == expected


def test_one_message_that_stands_twice_is_two():
    """A caller's own message object, used for two turns: one tracking id, two places."""
    conversation = [CONVERSATION[0], CONVERSATION[1], CONVERSATION[0]]

    assert origins(copy.deepcopy(conversation), conversation) == [0, 1, 2]


@pytest.mark.parametrize("position", ["after", "before"])
def test_a_message_with_a_tool_result_and_no_text_has_no_place(position):
    assert place({"role": "user", "content": [{"toolResult": {}}, {"text": " "}]}, "<m>", position) is None


@pytest.mark.parametrize("content", [[], None, [{"image": {}}]])
def test_a_message_that_has_lost_its_text_still_has_a_place(content):
    placed = place({"role": "user", "content": content}, "<m>", "after")

    assert placed.message["content"][placed.block_index] == {"text": "<m>"}
