"""The harness's own deciders by name: a variant or a name that there is not is an error with a hint."""

import pytest

from harness import cli
from harness.errors import HarnessError
from harness.recording.deciders import CosineDecider, SparrowDecider, StockDecider, open_decider
from strands_gated_memory.deciders.fallback import FallbackDecider
from strands_gated_memory.errors import ConfigurationError


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("cosine:anything", 'write "cosine"'),
        ("stock:all", 'write "stock"'),
        ("sparrow:anything", "available: sparrow-nano-general"),
        ("sparrow:{file}", "sparrow"),
        ("embedded:small", 'write "embedded"'),
        ("cosin", "did you mean 'cosine'"),
        ("stok", "did you mean 'stock'"),
        ("sparow:x", "did you mean 'sparrow'"),
        ("embeded", "did you mean 'embedded'"),
        ("stock,cosin", "did you mean 'cosine'"),
        ("stock,cosine:x", 'write "cosine"'),
        ("", "Known names: 'cosine'"),
    ],
)
def test_a_name_or_variant_that_there_is_not_is_an_error_with_a_hint(tmp_path, capsys, spec, hint):
    (tmp_path / "other.txt").write_text("no model")
    spec = spec.format(file=tmp_path / "other.txt")

    with pytest.raises((HarnessError, ConfigurationError)) as caught:
        open_decider(spec)
    assert hint in str(caught.value)
    assert cli.main(["gate", "--decider", spec, "--out", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_names_that_there_are(tmp_path):
    made = [
        open_decider(spec) for spec in ("cosine", "sparrow", "sparrow:sparrow-nano-general-v1.1", "stock", "cosine:")
    ]

    assert [type(one) for one in made] == [CosineDecider, SparrowDecider, SparrowDecider, StockDecider, CosineDecider]


def test_a_list_may_hold_them():
    decider = open_decider("stock, embedded")

    assert isinstance(decider, FallbackDecider)
    assert [name for name, _ in decider.members] == ["stock", "embedded"]


@pytest.mark.parametrize("spec", ["cosine", "stock,embedded", "embedded,fitted:x.json", "sparrow:any"])
def test_fit_refuses_what_an_agent_cannot_use(tmp_path, capsys, spec):
    assert cli.main(["fit", "--decider", spec, "--to", str(tmp_path / "fitted.json"), "--out", str(tmp_path)]) == 2
    assert "must name a decider that an agent can use" in capsys.readouterr().err
