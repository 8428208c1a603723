"""One self-contained HTML page a result: no script, no font, no address outside it."""

from collections.abc import Sequence
from html import escape

from saasload.experiments.curve import CurveResult, Level, ModeCurve
from saasload.experiments.measure import RULE
from saasload.experiments.reproduce import Cell, Reproduction
from saasload.experiments.svg import response_chart, throughput_chart

_STYLE = """
:root{color-scheme:light dark;--ground:#f7f7f5;--card:#fff;--ink:#1c1d21;--soft:#62656d;--rule:#e2e2de;
--c0:#2f62c9;--c1:#c2571a;--c2:#15845c;--good:#15845c;--bad:#c0312b}
@media(prefers-color-scheme:dark){:root{--ground:#131417;--card:#1c1e22;--ink:#ececea;--soft:#9b9fa8;--rule:#303339;
--c0:#7aa5ff;--c1:#f2a065;--c2:#5fd0a2;--good:#5fd0a2;--bad:#ff8a80}}
*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1080px;margin:0 auto;padding:40px 24px 64px}h1{font-size:26px;line-height:1.2;margin:0 0 6px;
letter-spacing:-.01em}h2{font-size:17px;margin:36px 0 10px}p{margin:6px 0}.soft{color:var(--soft)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(250px,1fr));gap:14px;margin:24px 0}
.card,figure{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:16px 18px;margin:0}
.card b{display:block;font-size:34px;line-height:1.1;font-variant-numeric:tabular-nums}.card small{color:var(--soft)}
.k0{border-top:3px solid var(--c0)}.k1{border-top:3px solid var(--c1)}.k2{border-top:3px solid var(--c2)}
figure{margin:14px 0;padding:14px 10px 6px}figcaption{color:var(--soft);font-size:13px;padding:2px 8px 8px}
svg{width:100%;height:auto;display:block}.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums;background:var(--card)}
th,td{text-align:right;padding:6px 10px;border-bottom:1px solid var(--rule);white-space:nowrap}
th{color:var(--soft);font-weight:500}th:first-child,td:first-child,.left{text-align:left}
.good{color:var(--good)}.bad{color:var(--bad)}.new{font-style:italic}
.grid{stroke:var(--rule)}.tick,.unit{fill:var(--soft);font-size:12px}.label{font-size:13px;font-weight:600}
.line{fill:none;stroke-width:2}.other{stroke-dasharray:3 5;opacity:.55;stroke-width:1.5}.bar{stroke-width:2}
.pick{fill:none;stroke-width:2}.band{opacity:.09}.r0{opacity:1}.r1{opacity:.7}.r2{opacity:.45}
.r3{opacity:.8;stroke-dasharray:2 4}
.s0{stroke:var(--c0)}.d0,.b0,.t0{fill:var(--c0)}.s1{stroke:var(--c1)}.d1,.b1,.t1{fill:var(--c1)}
.s2{stroke:var(--c2)}.d2,.b2,.t2{fill:var(--c2)}
"""

_CHART_WORDS = (
    "Dots: mean of the repeats, bars: its 95 % interval. Solid: the model that fits better, dotted: the other. "
    "Shaded: from 90 % of the peak to the peak. Circle: the number to use."
)
_TIME_WORDS = (
    "p50, p95, p99 from a call's start (solid, fading), and p99 from when an even pace would have begun it (dotted)."
)
_LEVEL_HEADS = (
    "parallel", "rows an hour", "95 % interval", "whole run", "calls", "refused", "p50 s", "p95 s", "p99 s",
    "p99 s from schedule",
)  # fmt: skip


def curve_page(result: CurveResult) -> str:
    """Write the page of a curve."""
    plan = result.plan
    if result.simulated:
        where = f"simulated: scenario {escape(plan.scenario)} on the {plan.clock} clock"
    else:
        where = f"measured at {escape(plan.to or '')}"
    intro = (
        f"{where} · {plan.companies:,} companies of {plan.rows:,} rows at every level · "
        f"{plan.repeats} repeats · seed {plan.seed}"
    )
    return _page("How parallel?", intro, [_cards(result.curves), _charts(result.curves), _method()])


def reproduction_page(result: Reproduction) -> str:
    """Write the page of the published table."""
    known = sum(cell.known for cell in result.cells)
    intro = (
        f"simulated: scenario {result.scenario} on the virtual clock · seed {result.seed} · "
        f"{known} published cells, {len(result.cells) - known} that nobody had measured"
    )
    parts = [_cells(result.cells), _facts(result), _cards([result.curve]), _charts([result.curve]), _method()]
    return _page("The published load tests, again", intro, parts)


def _page(title: str, intro: str, parts: Sequence[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} · saasload</title><style>{_STYLE}</style></head><body><main>\n"
        f'<h1>{title}</h1><p class="soft">{intro}</p>\n' + "\n".join(parts) + "\n</main></body></html>\n"
    )


def _cards(curves: Sequence[ModeCurve]) -> str:
    return '<div class="cards">' + "".join(_card(curve, place) for place, curve in enumerate(curves)) + "</div>"


def _card(curve: ModeCurve, place: int) -> str:
    advice = curve.advice
    size = "one row" if curve.rows_per_call == 1 else f"{curve.rows_per_call} rows"
    model = {"usl": "Universal Scalability Law", "linear-flat": "a line and a ceiling"}[advice.fits.best.curve.name]
    return (
        f'<div class="card k{place}"><small>{curve.mode}, {size} a call: use</small>'
        f"<b>{advice.recommended}</b><p>{escape(advice.why)}.</p>"
        f"<small>peak at {advice.peak.value:.2f} ({advice.peak.low:.2f} to {advice.peak.high:.2f}), "
        f"90 % of it at {advice.ninety.value:.2f} ({advice.ninety.low:.2f} to {advice.ninety.high:.2f}); "
        f"fits best: {model}, {advice.fits.best.error:.1%} off, "
        f"AICc smaller by {advice.fits.other.aicc - advice.fits.best.aicc:,.0f}</small></div>"
    )


def _charts(curves: Sequence[ModeCurve]) -> str:
    parts = [
        "<h2>Throughput</h2><figure>",
        throughput_chart(curves),
        f"<figcaption>{_CHART_WORDS}</figcaption></figure>",
        "<h2>Response times</h2>",
    ]
    for place, curve in enumerate(curves):
        parts += [
            "<figure>", response_chart(curve, place),
            f"<figcaption>{curve.mode}: {_TIME_WORDS}</figcaption></figure>",
        ]  # fmt: skip
    parts.append("<h2>Figures</h2>")
    parts += [_levels(curve) for curve in curves]
    return "".join(parts)


def _levels(curve: ModeCurve) -> str:
    timed = any(level.client is not None for level in curve.levels)
    heads = [*_LEVEL_HEADS, *(("client CPU", "loop lag p99 ms") if timed else ())]
    head = "".join(f"<th>{name}</th>" for name in heads)
    rows = "".join(_level(level) for level in curve.levels)
    return f'<p class="soft">{curve.mode}</p><div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _level(level: Level) -> str:
    values = [
        f"{level.parallel}", f"{level.steady.value:,.0f}", f"{level.steady.low:,.0f} to {level.steady.high:,.0f}",
        f"{level.whole:,.0f}", f"{level.calls:,}", f"{level.refused:,}", f"{level.response.p50:.3g}",
        f"{level.response.p95:.3g}", f"{level.response.p99:.3g}", f"{level.from_due.p99:.3g}",
    ]  # fmt: skip
    cells = "".join(f"<td>{value}</td>" for value in values)
    if level.client is not None:
        kind = "bad" if level.client.is_bottleneck else ""
        cells += (
            f'<td class="{kind}">{level.client.cpu_share:.0%}</td><td class="{kind}">{level.client.lag_p99_ms:.1f}</td>'
        )
    return f"<tr>{cells}</tr>"


def _cells(cells: Sequence[Cell]) -> str:
    heads = ("parallel", "companies", "rows", "calls", "published s", "rows an hour", "reproduced s", "rows an hour",
             "deviation")  # fmt: skip
    head = '<th>test</th><th class="left">statement</th>' + "".join(f"<th>{name}</th>" for name in heads)
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(_cell(cell) for cell in cells)}</table></div>'


def _cell(cell: Cell) -> str:
    test = cell.test
    published = "never measured"
    if test.published_rows_per_hour is not None:
        published = " ".join(f"{seconds:g}" for seconds in test.published_s)
    elif test.published_s:
        published = f"{min(test.published_s):g} to {max(test.published_s):g}"
    deviation = "new" if cell.deviation is None else f"{cell.deviation:+.1%}"
    rate = "" if test.published_rows_per_hour is None else f"{test.published_rows_per_hour:,.0f}"
    runs = " ".join(f"{seconds:.0f}" for seconds in cell.runs_s)
    kind = "new" if not cell.known else "good" if cell.fits else "bad"
    return (
        f'<tr><td>{test.name}</td><td class="left">{test.statement}</td><td>{test.parallel}</td>'
        f"<td>{test.companies}</td><td>{test.rows:,}</td><td>{cell.calls:,}</td><td>{published}</td><td>{rate}</td>"
        f'<td>{runs}</td><td>{cell.rows_per_hour:,.0f}</td><td class="{kind}">{deviation}</td></tr>'
    )


def _facts(result: Reproduction) -> str:
    knee = result.curve.advice.knee
    facts = [
        f"knee of the curve at {knee.value:.2f} ({knee.low:.2f} to {knee.high:.2f}); published: between 7 and 10",
        f"32 and 100 are {'' if result.slower_beyond else 'not '}slower than 10, as published",
    ]
    if result.agreement is not None:
        facts.append(
            f"EB10 on a real clock, sped up {result.agreement.time_scale:g} times: {result.agreement.real_s:.1f} s "
            f"against {result.agreement.virtual_s:.1f} s ({result.agreement.deviation:+.1%})"
        )
    return "".join(f"<p>{fact}.</p>" for fact in facts)


def _method() -> str:
    return (
        f'<h2>How it was measured</h2><p class="soft">Warm-up: {RULE}. Levels run in random order with equal work a '
        "company; repeats have other seeds. Intervals are percentile bootstraps over repeats. Models: the Universal "
        "Scalability Law (Gunther) and a line with a ceiling, by least squares of relative errors, compared by AICc "
        "(Burnham and Anderson).</p>"
    )
