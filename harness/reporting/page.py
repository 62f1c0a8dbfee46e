"""One self-contained HTML page from a results folder: no script, no network, readable on a phone.

python -m harness report --out build/harness
"""

from __future__ import annotations

import argparse
import base64
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from rich.console import Console

from ..errors import HarnessError
from ..files import write_text
from ..measuring.options import OUT
from ..measuring.tables import Result, merged, read, read_json
from .recordings import MEASUREMENTS

PAGE = "report.html"
_COLOURS = ("#1f6f8b", "#c7522a", "#7a7a7a", "#5b8e3e", "#8a4f9e", "#b8860b", "#2c3e50", "#d36ba6")
_STYLES = ("-", "--", ":", "-.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="results folder (default: %(default)s)")
    parser.add_argument("--page", type=Path, metavar="FILE", help=f"the page (default: DIR/{PAGE})")


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    page = arguments.page or arguments.out / PAGE
    write_text(page, html(arguments.out))
    Console().print(f"wrote {page}")
    return 0


def html(folder: Path) -> str:
    """Return the page of a results folder.

    Raises:
        HarnessError: The folder holds no results.
    """
    results = read(folder)
    if not results:
        raise HarnessError(f"{folder} holds no results; run a command, or python -m harness results, first")
    about = folder / "results.json"
    told = read_json(about) if about.exists() else {}
    provenance = told if isinstance(told, dict) else {}
    order, packages = provenance.get("results"), provenance.get("packages")
    made = {str(name): at for at, name in enumerate(order if isinstance(order, list) else ())}
    results.sort(key=lambda result: made.get(result.file_name, len(made)))
    titles = {measurement.name: measurement.title for measurement in MEASUREMENTS}
    rank = {name: at for at, name in enumerate(titles)}
    known = sorted({r.command for r in results}, key=lambda name: (rank.get(name, len(rank)), name))
    sections = [
        {
            "name": name,
            "title": titles.get(name, name),
            "tables": merged([r for r in results if r.command == name]),
            "sentences": [s for r in results if r.command == name for s in r.sentences],
            "figures": _figures([r for r in results if r.command == name]),
        }
        for name in known
    ]
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_TEMPLATE).render(
        sections=sections,
        deciders=list(dict.fromkeys((r.decider, r.model) for r in results)),
        timing=[(r.command, r.data, r.decider, r.timing) for r in results if "median_ms" in r.timing],
        provenance=provenance,
        packages=packages if isinstance(packages, dict) else {},
        errors=sum(r.errors for r in results),
    )


# Plots


def _figures(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the plots of one command's results: title, alternative text, image."""
    drawn: list[dict[str, Any]] = []
    for data in dict.fromkeys(result.data for result in results):
        mine = [result for result in results if result.data == data]
        for kind, draw in _DRAWN.items():
            for result in mine if kind in ("strips", "drift") else [None]:
                given = [one for one in ([result] if result else mine) if one.plots.get(kind)]
                if given:
                    title = f"{_TITLES[kind]}: {data}" + (f", {result.decider}" if result else "")
                    drawn.append({"title": title, "image": _svg(draw, given)})
    return drawn


def _svg(draw: Callable[[Any, Sequence[Result]], None], results: Sequence[Result]) -> Markup:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "harness", "font.size": 9, "svg.fonttype": "path", "axes.spines.top": False,
                         "axes.spines.right": False}):  # fmt: skip
        figure = Figure(figsize=(4.4, 3.2), layout="constrained")
        draw(figure, results)
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    # As an image, the drawing's ids cannot meet those of another one on the page.
    return Markup("data:image/svg+xml;base64,") + base64.b64encode(out.getvalue()).decode("ascii")


def _strips(figure: Any, results: Sequence[Result]) -> None:
    import numpy as np

    strips: Mapping[str, Any] = results[0].plots["strips"]
    groups = list(dict.fromkeys(name for one in strips.values() for name in one["groups"]))
    figure.set_size_inches(4.4, 0.9 + 0.34 * len(groups) * len(strips))
    axes = figure.subplots(len(strips), 1, sharex=True, squeeze=False)[:, 0]
    rng = np.random.default_rng(0)
    for at, (ax, (wording, one)) in enumerate(zip(axes, strips.items(), strict=True)):
        for row, name in enumerate(groups):
            scores = one["groups"].get(name, [])
            heights = row + rng.uniform(-0.28, 0.28, len(scores))
            ax.plot(scores, heights, "o", ms=3, alpha=0.55, mew=0, color=_COLOURS[row])
        if one.get("cut") is not None:
            ax.axvline(one["cut"], color="#222", lw=1, label="best cut, in sample" if at == 0 else None)
        if one.get("shipped") is not None:
            ax.axvline(one["shipped"], color="#222", lw=1, ls=":", label="shipped cut")
        ax.set_yticks(range(len(groups)), groups)
        ax.set_ylim(len(groups) - 0.5, -0.5)
        ax.set_title(wording, loc="left", fontsize=8)
    axes[-1].set_xlabel("P(yes)")
    axes[-1].set_xlim(-0.02, 1.02)
    handles, labels = axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper right", fontsize=7, frameon=False, ncols=2)


def _roc(figure: Any, results: Sequence[Result]) -> None:
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color="#bbb", lw=1)
    for who, result in enumerate(results):
        for at, (wording, one) in enumerate(result.plots["roc"].items()):
            label = f"{result.decider} {wording.split('/')[1]} {one['auc']:.2f}"
            ax.plot(one["no"], one["yes"], color=_COLOURS[who], ls=_STYLES[at % 4], lw=1.4, label=label)
    ax.set_xlabel("share of no above the cut")
    ax.set_ylabel("share of yes above it")
    ax.set_aspect("equal")
    figure.set_size_inches(4.4, 4.9)
    figure.legend(loc="outside lower center", fontsize=7, frameon=False, ncols=2, title="AUC", title_fontsize=7)


def _reliability(figure: Any, results: Sequence[Result]) -> None:
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color="#bbb", lw=1)
    for who, result in enumerate(results):
        wording, bins = next(iter(result.plots["reliability"].items()))
        largest = max(one["count"] for one in bins)
        ax.plot([b["predicted"] for b in bins], [b["observed"] for b in bins], "-", color=_COLOURS[who], lw=1)
        ax.scatter(
            [b["predicted"] for b in bins],
            [b["observed"] for b in bins],
            s=[8 + 70 * b["count"] / largest for b in bins],
            color=_COLOURS[who],
            alpha=0.7,
            label=f"{result.decider} {wording}",
        )
    ax.set_xlabel("mean P(yes) of a bin")
    ax.set_ylabel("share of yes in it")
    ax.legend(fontsize=7, frameon=False)


def _drift(figure: Any, results: Sequence[Result]) -> None:
    curves = results[0].plots["drift"]
    left, right = figure.subplots(1, 2, sharey=True)
    for at, (policy, one) in enumerate(curves.items()):
        for ax, kind in ((left, "shift"), (right, "squeeze")):
            x, y = zip(*one[kind], strict=True)
            ax.plot(x, y, color=_COLOURS[at], lw=1.4, label=policy if ax is left else None)
    left.set_xlabel("shift of log odds")
    right.set_xlabel("squeeze factor")
    left.set_ylabel("F1 of records kept")
    left.set_ylim(0, 1.02)
    figure.legend(loc="outside upper center", fontsize=7, frameon=False, ncols=2)


def _renderer(figure: Any, results: Sequence[Result]) -> None:
    ax = figure.subplots()
    labels: list[str] = []
    for who, result in enumerate(results):
        for wording, means in result.plots["renderer"].items():
            row = len(labels)
            labels.append(f"{result.decider} {wording.split('/')[1]}")
            for name, value in means.items():
                if value is not None:
                    form, relevance = name.split(", ")
                    ax.plot(
                        value,
                        row,
                        "o" if form == "raw" else "s",
                        color=_COLOURS[who],
                        mfc=_COLOURS[who] if relevance == "relevant" else "none",
                        ms=5,
                    )
    for form, marker in (("raw", "o"), ("rendered", "s")):
        for relevance, fill in (("relevant", "#333"), ("irrelevant", "none")):
            ax.plot([], [], marker, color="#333", mfc=fill, ms=5, label=f"{form}, {relevance}")
    ax.axvline(0, color="#bbb", lw=1)
    ax.set_yticks(range(len(labels)), labels)
    ax.invert_yaxis()
    ax.set_xlabel("mean P(JSON) − P(prose)")
    figure.set_size_inches(4.4, 1.6 + 0.25 * len(labels))
    figure.legend(loc="outside upper center", fontsize=7, frameon=False, ncols=4)


def _arms(figure: Any, results: Sequence[Result]) -> None:
    ax = figure.subplots()
    count = 0
    for who, result in enumerate(results):
        for one in result.plots["arms"]:
            tokens, recall = one.get("conversation_memory_tokens"), one.get("must_have_recall")
            if tokens is None or recall is None:
                continue
            ax.plot(tokens, recall, "o", color=_COLOURS[who], ms=5, label=result.decider if not count else None)
            ax.annotate(
                one["arm"],
                (tokens, recall),
                fontsize=6.5,
                xytext=(4, 5 if count % 2 else -9),
                textcoords="offset points",
            )
            count += 1
    ax.set_xlabel("memory tokens over the whole conversation")
    ax.set_ylabel("must-haves in the prompt")
    ax.set_ylim(-0.05, 1.1)


_DRAWN: Mapping[str, Callable[[Any, Sequence[Result]], None]] = {
    "strips": _strips,
    "roc": _roc,
    "reliability": _reliability,
    "drift": _drift,
    "renderer": _renderer,
    "arms": _arms,
}
_TITLES = {
    "strips": "Scores by label, with the cuts",
    "roc": "ROC",
    "reliability": "Reliability",
    "drift": "F1 under drift",
    "renderer": "JSON against prose",
    "arms": "Arms",
}

_TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Memory gating: results</title>
<style>
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fbfaf8; margin: 0 auto; max-width: 70rem;
  padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; border-top: 1px solid #d8d4cc; padding-top: 1rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
nav a { display: inline-block; padding: .45rem .7rem .45rem 0; color: #14566e; }
.wide { overflow-x: auto; -webkit-overflow-scrolling: touch; border: 1px solid #e2ded6; background: #fff; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid #eeeae2; vertical-align: top; }
td { white-space: nowrap; }
td:nth-child(2) { white-space: normal; }
th { font-weight: 600; min-width: 5.5rem; vertical-align: bottom; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
td:first-child, th:first-child { position: sticky; left: 0; background: #fff; }
.stamp { background: #a3180c; color: #fff; font-weight: 700; padding: .6rem .8rem; margin: .6rem 0; }
.note, footer { color: #55524c; font-size: .85rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
figure { margin: 0; background: #fff; border: 1px solid #e2ded6; padding: .5rem; }
figure img { width: 100%; height: auto; display: block; }
figcaption { font-size: .85rem; font-weight: 600; padding: .2rem .2rem .5rem; }
</style>
</head>
<body>
<h1>Memory gating: results</h1>
{% if errors %}<p class="stamp">!! decider errors  {{ errors }}: figures below leave the unanswered items out</p>
{% endif %}
<p>{% for name, model in deciders %}<b>{{ name }}</b> ({{ model }}){{ ", " if not loop.last }}{% endfor %}</p>
<nav aria-label="Sections">{% for s in sections %}<a href="#{{ s.name }}">{{ s.name }}</a> {% endfor %}<a
href="#made">how it was made</a></nav>
{% for section in sections %}
<section id="{{ section.name }}">
<h2>{{ section.title }}</h2>
{% if section.sentences %}<ul>
{% for sentence in section.sentences %}<li>{{ sentence }}</li>
{% endfor %}</ul>{% endif %}
{% if section.figures %}<div class="plots">
{% for f in section.figures %}<figure><figcaption>{{ f.title }}</figcaption><img alt="{{ f.title }}" src="{{ f.image
}}"></figure>
{% endfor %}</div>{% endif %}
{% for table in section.tables %}
<h3>{{ table.title }}</h3>
{% if table.stamp %}<p class="stamp">{{ table.stamp }}</p>{% endif %}
<div class="wide" tabindex="0" role="region" aria-label="{{ table.title }}"><table>
<thead><tr>{% for c in table.columns %}<th scope="col">{{ c }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{% for note in table.notes %}<p class="note">{{ note }}</p>{% endfor %}
{% endfor %}
</section>
{% endfor %}
<footer id="made">
<h2>How it was made</h2>
{% if provenance %}<p>{{ provenance.date }}, commit {{ provenance.commit or "unknown" }}{{ " with changes" if
provenance.dirty }}, Python {{ provenance.python }} on {{ provenance.system }};
{% for name, number in packages.items() %}{{ name }} {{ number }}{{ ", " if not loop.last }}{% endfor %}.</p>
{% endif %}
{% if timing %}<h3>Decider latency, as recorded</h3>
<div class="wide" tabindex="0" role="region" aria-label="Decider latency"><table>
<thead><tr><th scope="col">decider</th><th scope="col">command</th><th scope="col">data</th><th
scope="col">requests</th><th scope="col">median ms</th><th scope="col">total ms</th></tr></thead>
<tbody>
{% for command, data, decider, t in timing %}<tr><td>{{ decider }}</td><td>{{ command }}</td><td>{{ data }}</td><td>{{
"%.0f" | format(t.requests) }}</td><td>{{ "%.1f" | format(t.median_ms) }}</td><td>{{ "%.0f" | format(t.total_ms)
}}</td></tr>
{% endfor %}</tbody></table></div>{% endif %}
</footer>
</body>
</html>
"""
