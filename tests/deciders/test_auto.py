"""`"auto"`: which decision model an environment leads to, and that it says why."""

import logging

import pytest

from strands_gated_memory import resolve_decider
from strands_gated_memory.deciders import auto
from strands_gated_memory.deciders.transports.local import DEFAULT_CHECKPOINT

SERVER = {"SYSTEMONE_URL": "http://127.0.0.1:8000"}
KEYS = {"TYPESAFE_API_KEY": "k", "OPENROUTER_API_KEY": "k", "LIQUID_API_KEY": "k", "OPENAI_API_KEY": "k"}

# environment, installed, cached, accelerator -> chosen
MATRIX = {
    "nothing": ({}, False, False, False, "embedded"),
    "a server beats everything": ({**SERVER, **KEYS}, True, True, True, "http://127.0.0.1:8000"),
    "a key of TypeSafe's beats other keys": (KEYS, True, True, True, "jev"),
    "OpenRouter": (
        {"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": "k"},
        True,
        True,
        True,
        "openrouter:typesafe/jev-1.13",
    ),
    "Liquid with an address": ({"LIQUID_API_KEY": "k", "LIQUID_BASE_URL": "https://x"}, False, False, False, "liquid"),
    "Liquid without one": ({"LIQUID_API_KEY": "k"}, False, False, False, "embedded"),
    "OpenAI": ({"OPENAI_API_KEY": "k"}, True, True, True, "openai"),
    "an empty key is no key": ({"TYPESAFE_API_KEY": " "}, False, False, False, "embedded"),
    "cached strands-decider on a GPU": ({}, True, True, True, "strands-decider"),
    "cached strands-decider on a CPU": ({}, True, True, False, "embedded"),
    "installed, nothing cached": ({}, True, False, True, "embedded"),
    "cached, not installed": ({}, False, True, True, "embedded"),
}


@pytest.mark.parametrize("case", MATRIX)
def test_the_first_usable_is_chosen(case, tmp_path, monkeypatch):
    environment, installed, cached, gpu, chosen = MATRIX[case]
    monkeypatch.setattr(auto.importlib.util, "find_spec", lambda name: object() if installed else None)
    monkeypatch.setattr(auto, "has_accelerator", lambda: gpu)
    if cached:
        folder = tmp_path / "hub" / f"models--{DEFAULT_CHECKPOINT.replace('/', '--')}" / "snapshots" / "abc"
        folder.mkdir(parents=True)
        (folder / "strands_decider_config.json").write_text("{}")

    found, why = auto.choose({**environment, "HF_HOME": str(tmp_path)})

    assert found == chosen
    assert why


def test_it_logs_which_and_why(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("SYSTEMONE_URL", "http://127.0.0.1:8000")

    decider = resolve_decider("auto")
    resolve_decider("auto")  # as a server does for each request

    assert "127.0.0.1:8000" in repr(decider)
    assert caplog.text.count("SYSTEMONE_URL is set") == 1


def test_a_server_that_cannot_be_is_an_error_at_construction(monkeypatch):
    monkeypatch.setenv("SYSTEMONE_URL", "127.0.0.1:8000")

    with pytest.raises(ValueError, match="write 'http://127"):
        resolve_decider("auto")


def test_a_cached_adapter_without_its_base_is_not_cached(tmp_path):
    """The base is the larger part by far: the first turn would download it."""
    hub = tmp_path / "hub"
    folder = hub / f"models--{DEFAULT_CHECKPOINT.replace('/', '--')}" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "strands_decider_config.json").write_text('{"base_model": "Some/Base"}')
    assert not auto.is_cached(DEFAULT_CHECKPOINT, {"HF_HOME": str(tmp_path)})

    base = hub / "models--Some--Base" / "snapshots" / "def"
    base.mkdir(parents=True)
    (base / "model.safetensors").touch()
    assert auto.is_cached(DEFAULT_CHECKPOINT, {"HF_HOME": str(tmp_path)})


def test_the_cache_is_looked_for_where_the_hub_keeps_it(tmp_path):
    folder = tmp_path / "huggingface" / "hub" / f"models--{DEFAULT_CHECKPOINT.replace('/', '--')}" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "strands_decider_config.json").write_text("{}")

    assert auto.is_cached(DEFAULT_CHECKPOINT, {"XDG_CACHE_HOME": str(tmp_path)})


def test_a_user_without_a_home_is_no_error(monkeypatch):
    monkeypatch.setattr(auto.os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(auto.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))

    assert not auto.is_cached(DEFAULT_CHECKPOINT, {})
