"""The page: self-contained, escaped, and no wider than a phone in a real browser."""

from __future__ import annotations

import html
import re
import shutil
import subprocess

import pytest

from harness import cli
from harness.errors import HarnessError
from harness.measuring.tables import Result, Table, save
from harness.reporting import page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = '<script>alert("x")</script>'


def result(decider="embedded", **changes):
    values = {
        "command": "gate",
        "data": "persona",
        "data_sha256": "0" * 64,
        "decider": decider,
        "model": "m",
        "tables": (
            Table(
                key="gate",
                title="gate, persona",
                columns=("decider", "wording", *(f"a figure with a long name {n}" for n in range(8))),
                rows=((decider, "gate/criteria/1", *["95 % [90, 100]"] * 8),),
                notes=("A note.",),
            ),
        ),
        "sentences": (f"{decider} says.",),
        "plots": {
            "strips": {"gate/criteria/1": {"groups": {"needs memory": [0.9, 0.7], "needs nothing": [0.1]}, "cut": 0.4,
                                           "shipped": 0.2}},
            "roc": {"gate/criteria/1": {"no": [0, 0, 1], "yes": [0, 1, 1], "auc": 1.0}},
            "reliability": {"gate/criteria/1": [{"predicted": 0.8, "observed": 1.0, "count": 2}]},
        },
        "timing": {"requests": 3.0, "median_ms": 7.5, "total_ms": 22.0},
    }  # fmt: skip
    return Result(**(values | changes))


def page_of(tmp_path, *results):
    save(results, tmp_path)
    assert cli.main(["report", "--out", str(tmp_path)]) == 0
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_page_holds_everything_itself(tmp_path):
    page = page_of(tmp_path, result())

    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert "<script" not in page
    assert page.count('src="data:image/svg+xml;base64,') == 3
    assert "95 % [90, 100]" in page
    assert "7.5" in page


def test_names_and_notes_are_escaped(tmp_path):
    page = page_of(tmp_path, result(HOSTILE, sentences=(HOSTILE,)))

    assert HOSTILE not in page
    assert html.escape(HOSTILE, quote=False).replace('"', "&#34;") in page


def test_decider_errors_come_first(tmp_path):
    page = page_of(tmp_path, result(errors=20))

    assert page.index("!! decider errors  20") < page.index("<nav")


def test_drift_shape_and_arms_are_drawn(tmp_path):
    page = page_of(
        tmp_path,
        result(plots={"drift": {"hybrid": {"shift": [(-1, 0.2), (1, 0.3)], "squeeze": [(0.5, 0.2), (1, 0.3)]}}}),
        result("sparrow", plots={"renderer": {"record/plain/1": {"raw, relevant": 0.1, "rendered, relevant": None}}}),
        result("cosine", plots={"arms": [{"arm": "stock raw", "conversation_memory_tokens": 900,
                                          "must_have_recall": 1.0}]}),
    )  # fmt: skip

    assert [title for title in ("F1 under drift", "JSON against prose", "Arms") if title not in page] == []


def test_an_empty_folder_says_what_to_run(tmp_path):
    with pytest.raises(HarnessError, match="holds no results; run"):
        page.html(tmp_path)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
def test_a_phone_shows_it_without_scrolling_sideways_and_draws_every_plot(tmp_path):
    page = page_of(tmp_path, result(), result("sparrow"))
    # A frame of a phone's width: the window of a headless browser has a least width.
    probe = tmp_path / "probe.html"
    probe.write_text(
        f'<body><iframe id="f" width="390" height="844" srcdoc="{html.escape(page)}"></iframe><script>'
        'const f = document.getElementById("f"); f.onload = () => { const d = f.contentDocument;'
        "document.title = [f.contentWindow.innerWidth, d.scrollingElement.scrollWidth, d.images.length,"
        '[...d.images].filter(i => !i.naturalWidth).length].join(" "); };</script>',
        encoding="utf-8",
    )
    shown = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--virtual-time-budget=10000", "--dump-dom", probe.as_uri()],
        capture_output=True, text=True, timeout=100, check=True,
    ).stdout  # fmt: skip
    width, content, images, broken = map(int, re.search(r"<title>([\d ]+)</title>", shown)[1].split())

    assert width == 390
    assert content <= width
    assert (images, broken) == (4, 0)


@pytest.mark.parametrize("name", ["gate-persona-embedded.json", "results.json"])
@pytest.mark.parametrize("raw", [b"", b"\xff\xfe", b"[" * 100_000], ids=["empty", "not text", "deep"])
def test_a_file_that_is_not_json_is_named(tmp_path, capsys, name, raw):
    save([result()], tmp_path)
    (tmp_path / name).write_bytes(raw)

    assert cli.main(["report", "--out", str(tmp_path)]) == 2
    assert f"{name}: not JSON" in capsys.readouterr().err


def test_a_result_with_a_wrong_field_is_named(tmp_path, capsys):
    save([result()], tmp_path)
    (tmp_path / "other.json").write_text('{"command": "gate", "decider": null, "tables": []}')

    assert cli.main(["report", "--out", str(tmp_path)]) == 2
    assert re.search(r"other\.json: \w+: ", capsys.readouterr().err)


@pytest.mark.parametrize("told", ["[]", "3", '{"results": 3, "packages": [1]}', "{}"])
def test_a_page_is_written_without_the_account_of_how_it_was_made(tmp_path, told):
    (tmp_path / "results.json").write_text(told)

    assert "95 % [90, 100]" in page_of(tmp_path, result())


def test_a_folder_without_results_is_not_made(tmp_path):
    assert cli.main(["report", "--out", str(tmp_path / "absent")]) == 2
    assert not (tmp_path / "absent").exists()
