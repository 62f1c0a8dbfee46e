"""Placeholder until the renderer lands."""


def render_record(text: str) -> str:
    """Return the text on one line."""
    return " ".join(text.split())
