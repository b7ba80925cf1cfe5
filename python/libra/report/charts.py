"""The charts of a page: plain functions from results to plotly figures."""

import plotly.graph_objects as go

from libra.report.results import methods_of

BEFORE = "#b4533c"
AFTER = "#2f6f8f"
QUIET = "#a9b3ba"
MEAN = "#2f6f8f"
MOST = "#c9a227"

# Of more methods than MANY, a chart of curves shows these only.
MANY = 6
WORTH_A_CURVE = ("ulysses", "wlb-repack", "distca", "libra-paper", "libra", "ideal")

Chart = tuple[str, str, go.Figure]  # title, what it shows, figure


def charts_of(results) -> list[Chart]:
    charts = []
    if results.simulation:
        charts += [
            lengths(results.simulation),
            loads(results.simulation),
            stragglers(results.simulation),
            throughput(results.simulation),
            timeline(results.simulation),
        ]
    if len(results.simulations) > 1:
        charts.append(scaling(results.simulations))
    if results.tunes:
        charts.append(pool_evenness(results.tunes[-1]))
        charts.append(candidates(results.tunes[-1]))
    if results.papers:
        charts += paper_charts(results.papers[-1])
    return [chart for chart in charts if chart]


def _figure(height: int = 380, **layout) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
        font={"family": "system-ui, sans-serif", "size": 13},
        hoverlabel={"font_size": 13},
        **layout,
    )
    figure.update_xaxes(automargin=True, title_font_size=12)
    figure.update_yaxes(automargin=True, title_font_size=12)
    return figure


def _size(tokens: int) -> str:
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if tokens >= unit:
            return f"{tokens // unit}{name}"
    return str(tokens)


def lengths(simulation: dict) -> Chart:
    buckets = simulation["lengths"]
    names = [_size(bucket["begin"]) for bucket in buckets]
    columns = (
        ("documents", QUIET, [bucket["documents"] for bucket in buckets]),
        ("tokens", AFTER, [bucket["tokens"] for bucket in buckets]),
        ("attention work", BEFORE, [bucket["attention_share"] for bucket in buckets]),
    )
    figure = _figure(barmode="group", yaxis={"title": "share of all", "tickformat": ".0%"})
    for name, color, values in columns:
        whole = sum(values) or 1
        shares = [value / whole for value in values]
        figure.add_bar(x=names, y=shares, name=name, marker_color=color)
    figure.update_xaxes(title="tokens of a document, from", type="category")
    return (
        "Sample lengths",
        "Attention costs the square of a length: few long documents hold most of the work.",
        figure,
    )


def _before(methods: dict) -> str | None:
    for name in ("ulysses", "none", "ring-zigzag"):
        if name in methods:
            return name
    return None


def _after(methods: dict) -> str | None:
    for name in ("libra", "libra-paper"):
        if name in methods:
            return name
    return None


def loads(simulation: dict) -> Chart | None:
    methods = methods_of(simulation)
    figure = _figure(yaxis={"title": "ms", "rangemode": "tozero"})
    for name, color in ((_before(methods), BEFORE), (_after(methods), AFTER)):
        if name is None:
            continue
        times = methods[name]["worker_ms"]
        figure.add_scatter(
            x=list(range(len(times))),
            y=times,
            name=name,
            mode="lines",
            line={"color": color, "shape": "hv", "width": 1.5},
            fill="tozeroy",
            opacity=0.8,
        )
    if not figure.data:
        return None
    figure.update_xaxes(title="worker")
    return (
        "Load per worker, before and after",
        "Core attention of one layer at the first step, communication included. The peak decides.",
        figure,
    )


def stragglers(simulation: dict) -> Chart:
    methods = methods_of(simulation)
    names = list(methods)[::-1]
    figure = _figure(height=120 + 38 * len(names), barmode="group", bargap=0.25)
    for field, label, color in (
        ("straggler_max_ms", "worst step of a window", MOST),
        ("straggler_mean_ms", "mean over steps", MEAN),
    ):
        figure.add_bar(
            y=names,
            x=[methods[name][field] for name in names],
            name=label,
            orientation="h",
            marker_color=color,
        )
    figure.update_layout(legend_traceorder="reversed")
    figure.update_xaxes(title="ms")
    return (
        "Stragglers of core attention",
        "The slowest worker of one layer, forward and backward. wlb trains a step on other "
        "samples than the others.",
        figure,
    )


def throughput(simulation: dict) -> Chart:
    methods = methods_of(simulation)
    names = list(methods)[::-1]
    values = [methods[name]["tokens_per_gpu_s"] for name in names]
    colors = [AFTER if name.startswith("libra") else QUIET for name in names]
    figure = _figure(height=100 + 26 * len(names), showlegend=False)
    figure.add_bar(y=names, x=values, orientation="h", marker_color=colors)
    if "ideal" in methods:
        figure.add_vline(x=methods["ideal"]["tokens_per_gpu_s"], line_dash="dot", line_color=BEFORE)
    figure.update_xaxes(title="tokens/s/GPU")
    return (
        "Training throughput",
        "Whole optimizer steps, linear layers and pipeline included. Dotted: perfect balance on a "
        "free network.",
        figure,
    )


def timeline(simulation: dict) -> Chart | None:
    methods = methods_of(simulation)
    shown = [name for name in (_before(methods), _after(methods)) if name]
    figure = _figure(height=140 + 44 * len(shown) * simulation["pp"], barmode="overlay")
    for is_backward, label, color in ((False, "forward", AFTER), (True, "backward", MOST)):
        bars = [
            (f"{name}, stage {operation['stage']}", operation)
            for name in shown
            for operation in methods[name]["timeline"]
            if (operation["pass"] == "backward") == is_backward
        ]
        figure.add_bar(
            y=[row for row, _ in bars],
            x=[operation["end_s"] - operation["begin_s"] for _, operation in bars],
            base=[operation["begin_s"] for _, operation in bars],
            text=[f"microbatch {operation['microbatch']}" for _, operation in bars],
            textposition="none",
            hovertemplate="%{y}, %{text}<br>%{x:.3f} s<extra></extra>",
            name=label,
            orientation="h",
            marker={"color": color, "line": {"color": "white", "width": 0.6}},
        )
    if not figure.data or not shown:
        return None
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title="seconds")
    return (
        "Timeline of one step",
        "The slowest replicas' pipeline stages in the first window.",
        figure,
    )


def scaling(simulations: list[dict]) -> Chart:
    ordered = sorted(simulations, key=lambda simulation: simulation["gpus"])
    names = list(dict.fromkeys(name for each in ordered for name in methods_of(each)))
    if len(names) > MANY:
        names = [name for name in names if name in WORTH_A_CURVE]
    figure = _figure(height=420)
    for name in names:
        points = [(s["gpus"], methods_of(s)[name]) for s in ordered if name in methods_of(s)]
        if len(points) < 2:
            continue
        figure.add_scatter(
            x=[gpus for gpus, _ in points],
            y=[figures["tokens_per_gpu_s"] for _, figures in points],
            name=name,
            mode="lines+markers",
        )
    figure.update_xaxes(title="GPUs", type="log", tickvals=[s["gpus"] for s in ordered])
    figure.update_yaxes(title="tokens/s/GPU", rangemode="tozero")
    return ("Scaling", "Level lines scale perfectly.", figure)


def pool_evenness(tune: dict) -> Chart:
    pools = [str(point["pool"]) for point in tune["evenness"]]
    figure = _figure(showlegend=False)
    figure.add_scatter(
        x=pools,
        y=[max(point["r_minus_1"], 1e-6) for point in tune["evenness"]],
        mode="lines+markers",
        line_color=AFTER,
    )
    figure.add_hline(y=tune["wanted_r_minus_1"], line_dash="dot", line_color=BEFORE)
    figure.update_xaxes(title="replicas of a pool, P", type="category")
    figure.update_yaxes(title="R - 1", type="log")
    return (
        "How even pools are",
        "Heaviest pool over the mean pool, less 1, by VRSP. Dotted: what was wanted.",
        figure,
    )


def candidates(tune: dict) -> Chart:
    verdicts = [tune["best"], *tune["runners_up"]][::-1]
    names = [
        "P {pool}, B {size}, H {head_shards}, M {chunks}, tau {tau}, {placer}, {home}".format(
            size=_size(verdict["block"]), **verdict
        )
        for verdict in verdicts
    ]
    rows = [f"{len(names) - i}" for i in range(len(names))]
    figure = _figure(height=110 + 34 * len(names), showlegend=False)
    figure.add_bar(
        y=rows,
        x=[verdict["step_s"] for verdict in verdicts],
        error_x={"array": [verdict["step_s_deviation"] for verdict in verdicts]},
        text=names,
        textposition="inside",
        insidetextanchor="start",
        hovertemplate="%{text}<br>%{x:.2f} s<extra></extra>",
        orientation="h",
        marker_color=AFTER,
    )
    figure.update_yaxes(title="rank")
    figure.update_xaxes(title="seconds")
    return (
        "Best settings",
        f"Time of a step and its spread. To paste: {tune['best']['options']}",
        figure,
    )


def paper_charts(paper: dict) -> list[Chart]:
    figures = paper["figures"]
    charts = []
    if "12" in figures:
        charts.append(paper_comparison(figures["12"], "12"))
    if "15" in figures:
        charts.append(paper_sweep(figures["15"]))
    if "13" in figures:
        charts.append(paper_scaling(figures["13"]))
    return charts


def paper_comparison(result: dict, number: str) -> Chart:
    rows = [row for row in result["rows"] if row["paper"] is not None][::-1]
    figure = _figure(height=120 + 40 * len(rows), barmode="group")
    for field, label, color in (
        ("shipped", "as shipped", MOST),
        ("faithful", "ours, faithful", AFTER),
        ("paper", "paper", QUIET),
    ):
        figure.add_bar(
            y=[row["what"] for row in rows],
            x=[row[field] for row in rows],
            name=label,
            orientation="h",
            marker_color=color,
        )
    figure.update_layout(legend_traceorder="reversed")
    figure.update_xaxes(title=result["unit"])
    return (f"The paper's Figure {number}: {result['title']}", result["why"], figure)


def _sweep_series(result: dict, workload: str, what: str) -> tuple[list[str], list[float]]:
    pools, values = [], []
    for row in result["rows"]:
        parts = row["what"].split(", ", 2)
        if parts[0] == workload and parts[2] == what:
            pools.append(parts[1].removeprefix("P "))
            values.append(row["faithful"])
    return pools, values


def paper_sweep(result: dict) -> Chart:
    figure = _figure(height=440)
    series = (
        ("TAP + VRSP, computation", "solid"),
        ("TAP + VRSP, communication", "dot"),
        ("full, all", "dash"),
    )
    for workload, color in (("256K", AFTER), ("1M", BEFORE)):
        for what, dash in series:
            pools, values = _sweep_series(result, workload, what)
            figure.add_scatter(
                x=pools,
                y=values,
                name=f"{workload}: {what}",
                mode="lines+markers",
                line={"color": color, "dash": dash},
            )
    figure.update_xaxes(title="replicas of a pool, P", type="category")
    figure.update_yaxes(title="over Ulysses' mean", rangemode="tozero")
    return ("Pool-size sweep (the paper's Figure 15)", result["why"], figure)


def paper_scaling(result: dict) -> Chart:
    figure = _figure(height=440)
    for workload, color in (("256K", AFTER), ("1M", BEFORE)):
        for name, dash in (("Ulysses", "dot"), ("Libra", "solid")):
            rows = [
                row
                for row in result["rows"]
                if row["what"].startswith(f"{workload}, DP") and row["what"].endswith(name)
            ]
            figure.add_scatter(
                x=[row["what"].split(", ")[1].removeprefix("DP ") for row in rows],
                y=[row["faithful"] for row in rows],
                name=f"{workload}: {name}",
                mode="lines+markers",
                line={"color": color, "dash": dash},
            )
    figure.update_xaxes(title="DP", type="category")
    figure.update_yaxes(title="throughput over DP 1", rangemode="tozero")
    return ("DP scaling (the paper's Figure 13)", result["why"], figure)
