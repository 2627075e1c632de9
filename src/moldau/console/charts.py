"""Charts of lines over time, drawn as SVG, so that their texts take their colour from the page, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui import ui

SVG = "svg"
COLOURS = ("#1f8fb3", "#b5651d", "#2f855a", "#8e5bb5", "#c05a7a")
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
