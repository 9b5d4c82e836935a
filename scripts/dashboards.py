"""The Grafana dashboards in deploy/grafana, made from `dashboard_panels.py`: `make docs` writes them.

python scripts/dashboards.py [--check]
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, StackingMode, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

if __package__:
    from scripts.dashboard_panels import BOARDS, Board, Panel
else:
    from dashboard_panels import BOARDS, Board, Panel

FOLDER = Path(__file__).resolve().parents[1] / "deploy/grafana"
_SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
_WIDTH, _HEIGHT = 12, 8
#: What the names in expressions stand for in Grafana.
GRAFANA = {
    "SPACE": 'job=~"$job",instance=~"$instance",namespace=~"$namespace"',
    "NODE": 'job=~"$job",instance=~"$instance"',
    "RANGE": "$__rate_interval",
}


def expand(expression: str, names: dict[str, str]) -> str:
    """The expression with its names replaced."""
    for name, text in names.items():
        expression = expression.replace(name, text)
    return expression


def _panel(panel: Panel) -> Any:
    builder: Any = {"heatmap": heatmap.Panel, "number": stat.Panel}.get(panel.kind, timeseries.Panel)()
    builder.title(panel.title).description(panel.description).unit(panel.unit).datasource(_SOURCE)
    builder.span(_WIDTH).height(_HEIGHT)
    for number, (expression, legend) in enumerate(panel.queries):
        query = prometheus.Dataquery().expr(expand(expression, GRAFANA)).legend_format(legend)
        query.ref_id(chr(ord("A") + number)).datasource(_SOURCE)
        builder.with_target(query.format("heatmap") if panel.kind == "heatmap" else query.range())
    if panel.kind in {"lines", "stack"}:
        builder.min(0 if panel.title != "Clock offset" else None).fill_opacity(40 if panel.kind == "stack" else 8)
        builder.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
        legend_options = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(show_legend=True)
        builder.legend(legend_options.placement(LegendPlacement.BOTTOM))
    if panel.kind == "stack":
        builder.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    return builder


def _variable(name: str, label: str, query: str) -> Any:
    variable = dashboard.QueryVariable(name).label(label).query(query).datasource(_SOURCE)
    return variable.multi(multi=True).include_all(include_all=True).refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)


def _namespaces(board: Board) -> str:
    """The namespaces of which a panel may show something: not each of them creates timers."""
    queries = (expression for panel in board.panels for expression, _ in panel.queries)
    counters = sorted({name for expression in queries for name in re.findall(r"(\w+)\{SPACE", expression)})
    return f'label_values({{__name__=~"{"|".join(counters)}",job=~"$job"}}, namespace)'


def built(board: Board) -> str:
    """The dashboard as Grafana imports it."""
    builder = dashboard.Dashboard(board.title).uid(board.uid).description(board.description).tags(["tocsin"])
    builder.refresh("30s").time("now-3h", "now").timezone("browser").editable()
    builder.with_variable(dashboard.DatasourceVariable("source").label("Data source").type("prometheus"))
    builder.with_variable(_variable("job", "Job", "label_values(tocsin_dispatching, job)"))
    builder.with_variable(_variable("instance", "Node", 'label_values(tocsin_dispatching{job=~"$job"}, instance)'))
    if board.namespaces:
        # Without a value of its own, "All" would be those of the list, of which one has a series only after its first event.
        builder.with_variable(_variable("namespace", "Namespace", _namespaces(board)).all_value(".*"))
    for panel in board.panels:
        builder.with_panel(_panel(panel))
    return JSONEncoder(sort_keys=True, indent=2).encode(builder.build()) + "\n"


def made() -> dict[Path, str]:
    """The files and their contents."""
    return {FOLDER / f"{board.uid}.json": built(board) for board in BOARDS}


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Make the Grafana dashboards.")
    parser.add_argument("--check", action="store_true", help="only report files that are out of date")
    if parser.parse_args().check:
        late = [path.name for path, text in made().items() if not path.exists() or path.read_text() != text]
        for name in late:
            print(f"deploy/grafana/{name} is out of date: run `make docs`", file=sys.stderr)
        return 1 if late else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in made().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
