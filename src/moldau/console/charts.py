"""Charts, drawn as SVG, so that their texts take their colour from the page, light or dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nicegui import ui

SVG = "svg"
COLOURS = ("#1f8fb3", "#b5651d", "#2f855a", "#8e5bb5", "#c05a7a")
MARKS = ("#8e5bb5", "#55636f", "#1f8fb3", "#c53030", "#b7791f", "#2f855a")
GRID = "rgba(128,140,152,.3)"
NOTHING = "Nothing has been seen yet"
Points = Sequence[tuple[float, float]]


class Lines:
    """A chart of lines over time, filled again and again. `about` describes it for screen readers."""

    def __init__(self, height_px: int, about: str) -> None:
        self._view = ui.echart(options([], about), renderer=SVG).style(f"height: {height_px}px").classes("w-full")
        self._about = about

    def fill(self, lines: Sequence[tuple[str, Points]]) -> None:
        self._view.options.update(options(lines, self._about))
        self._view.update()


def options(lines: Sequence[tuple[str, Points]], about: str) -> dict[str, Any]:
    """Return the options for ECharts; points are (seconds, number)."""
    is_empty = not any(points for _, points in lines)
    axis = {"show": not is_empty, "splitNumber": 4}
    return {
        "animation": False,
        "aria": {"enabled": True, "label": {"description": describe(lines, about)}},
        "title": {"show": is_empty, "text": NOTHING, "left": "center", "top": "middle", "textStyle": {"fontSize": 14}},
        "grid": {"left": 8, "right": 28, "top": 36 if len(lines) > 1 else 12, "bottom": 8, "containLabel": True},
        "legend": {"top": 0, "type": "scroll", "show": len(lines) > 1},
        "tooltip": {"trigger": "axis"},
        "xAxis": {**axis, "type": "time", "axisLabel": {"formatter": "{HH}:{mm}:{ss}", "hideOverlap": True}},
        "yAxis": {**axis, "type": "value", "min": 0, "minInterval": 1, "splitLine": {"lineStyle": {"color": GRID}}},
        "color": list(COLOURS),
        "series": [_line(name, points, alone=len(lines) == 1) for name, points in lines],
    }


def describe(lines: Sequence[tuple[str, Points]], about: str) -> str:
    """Return the description for screen readers."""
    now = [f"{name} {points[-1][1]:,.0f}" for name, points in lines if points]
    return f"{about}. {'Now: ' + ', '.join(now) if now else NOTHING}."


def _line(name: str, points: Points, *, alone: bool) -> dict[str, Any]:
    return {
        "name": name,
        "type": "line",
        "showSymbol": len(points) == 1,
        "areaStyle": {"opacity": 0.15} if alone else None,
        "data": [[round(at * 1000), round(number, 1)] for at, number in points],
    }


def bars(
    names: Sequence[str], parts: Mapping[str, Sequence[float]], about: str, unit: str = "", *, stacked: bool = True
) -> None:
    """Draw a horizontal bar for each name. It consists of parts, whose sizes are given in the order of the names; if
    they are not stacked, each part is a bar of its own."""
    axis = {"axisLine": {"show": False}, "axisTick": {"show": False}}
    series = [
        {"name": part, "type": "bar", "stack": "all" if stacked else part, "barMaxWidth": 18, "data": list(sizes)}
        for part, sizes in parts.items()
    ]
    told = "; ".join(
        f"{name}: " + ", ".join(f"{part} {sizes[place]:,.0f}{unit}" for part, sizes in parts.items())
        for place, name in enumerate(names)
    )
    height = (30 if stacked else 40) * len(names) + (66 if len(parts) > 1 else 40)
    view = {
        "animation": False,
        "aria": {"enabled": True, "label": {"description": f"{about}. {told}."}},
        "grid": {"left": 8, "right": 24, "top": 30 if len(parts) > 1 else 6, "bottom": 6, "containLabel": True},
        "legend": {"top": 0, "left": 0, "show": len(parts) > 1},
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}},
        "xAxis": {
            **axis,
            "type": "value",
            "minInterval": 0 if unit else 1,
            "splitNumber": 4,
            "axisLabel": {"formatter": f"{{value}}{unit}"},
            "splitLine": {"lineStyle": {"color": GRID}},
        },
        "yAxis": {**axis, "type": "category", "data": list(names), "inverse": True},
        "color": list(COLOURS),
        "series": series,
    }
    ui.echart(view, renderer=SVG).style(f"height: {height}px").classes("w-full")


def marks(rows: Sequence[str], points: Sequence[tuple[float, str]], about: str) -> None:
    """Draw a point in the row that it belongs to at each time; points are (seconds, row)."""
    series = [
        {
            "name": row,
            "type": "scatter",
            "symbolSize": 9,
            "itemStyle": {"opacity": 0.75},
            "data": [[round(at * 1000), row] for at, of in points if of == row],
        }
        for row in rows
    ]
    counted = ", ".join(f"{row} {len(one['data'])}" for row, one in zip(rows, series, strict=True))
    view = {
        "animation": False,
        "aria": {"enabled": True, "label": {"description": f"{about}: {counted}."}},
        "grid": {"left": 8, "right": 28, "top": 8, "bottom": 8, "containLabel": True},
        "tooltip": {"trigger": "item", "formatter": "{a}"},
        "xAxis": {
            "type": "time",
            "splitNumber": 4,
            "axisLabel": {"formatter": "{HH}:{mm}:{ss}", "hideOverlap": True},
            "splitLine": {"show": False},
        },
        "yAxis": {
            "type": "category",
            "data": list(rows),
            "inverse": True,
            "axisTick": {"show": False},
            "splitLine": {"show": True, "lineStyle": {"color": GRID}},
        },
        "color": list(MARKS),
        "series": series,
    }
    ui.echart(view, renderer=SVG).style(f"height: {26 * len(rows) + 44}px").classes("w-full")
