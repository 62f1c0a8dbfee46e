"""Lists of deciders in one text: what a comma parts, and what it belongs to."""

import pytest

from strands_gated_memory.core.specs import NAMES, specs_in
from strands_gated_memory.deciders.resolve import _NAMED

HOST = "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("embedded", ["embedded"]),
        ("jev,embedded", ["jev", "embedded"]),
        (" jev , embedded ", ["jev", "embedded"]),
        ("jev:jev-latest,sagemaker:mine", ["jev:jev-latest", "sagemaker:mine"]),
        (f"{HOST}/a,b", [f"{HOST}/a,b"]),
        (f"{HOST}/v1/systemone?only=a,b,embedding", [f"{HOST}/v1/systemone?only=a,b,embedding"]),
        (f"{HOST}/a,b,embedded", [f"{HOST}/a,b", "embedded"]),
        (f"{HOST}/a,b, embedded", [f"{HOST}/a,b", "embedded"]),
        (f"{HOST}/a,HTTPS://other/c,d", [f"{HOST}/a", "HTTPS://other/c,d"]),
        (f"systemone:{HOST}/a,b,jev:x", [f"systemone:{HOST}/a,b", "jev:x"]),
        (f"{HOST}#d1,1", [f"{HOST}#d1,1"]),
        ("fitted:a,b.json,embedded", ["fitted:a,b.json", "embedded"]),
        # Slips stay visible: no comma belongs to a host or to a name.
        (f"{HOST},embeded", [HOST, "embeded"]),
        ("embedded,embeded", ["embedded", "embeded"]),
        ("jev,,embedded", ["jev", "", "embedded"]),
    ],
)
def test_a_comma_parts_specifications_and_not_addresses(text, specs):
    assert specs_in(text) == specs


def test_every_name_that_can_be_resolved_is_known_and_no_other():
    assert tuple(_NAMED) == NAMES
