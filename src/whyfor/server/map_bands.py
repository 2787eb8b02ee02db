"""The bands of the map: from sessions to commits, from commits to files, as wide as the lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from whyfor.model.branch_map import BY_HAND, BranchMap, MapBand

SOURCE, COMMIT, FILE = 64, 56, 28  # heights of rows
WIDE = 150
_LINE = 0.7  # px for a line
_LEAST = 2.2
_EDGE = 6.0  # of a row that no band touches


class DrawnBand(msgspec.Struct, frozen=True):
    """A band as SVG draws it."""

    style: str  # agent, or you
    path: str
    is_on: bool
    title: str


class MapDrawing(msgspec.Struct, frozen=True):
    height: int
    left: list[DrawnBand]
    right: list[DrawnBand]


class _Column:
    """Places the ends of bands at the rows of a list."""

    def __init__(self, tops: dict[str, float], height: float, scale: float) -> None:
        self.tops = tops
        self.room = height - 2 * _EDGE
        self.height = height
        self.scale = scale

    def ends(
        self, bands: Sequence[MapBand], row: Callable[[MapBand], str]
    ) -> dict[MapBand, tuple[float, float]]:
        """Return where each band begins and how wide it is there."""
        totals: dict[str, float] = {}
        for band in bands:
            totals[row(band)] = totals.get(row(band), 0.0) + self._width(band)
        shrink = {name: min(1.0, self.room / total) for name, total in totals.items()}
        at = {
            name: self.tops[name] + (self.height - total * shrink[name]) / 2
            for name, total in totals.items()
        }
        found = {}
        for band in bands:
            name = row(band)
            wide = self._width(band) * shrink[name]
            found[band] = (at[name], wide)
            at[name] += wide
        return found

    def _width(self, band: MapBand) -> float:
        return max(_LEAST, band.lines * self.scale)


def draw(found: BranchMap, rows: Sequence[tuple[str, str]]) -> MapDrawing:
    """Return both gutters. `rows` are those of the list of files: folders and files, in order."""
    sources = {source.name: at * SOURCE + 4.0 for at, source in enumerate(found.sources)}
    commits = {commit.sha: at * COMMIT + 4.0 for at, commit in enumerate(found.commits)}
    files = {path: at * float(FILE) for at, (kind, path) in enumerate(rows) if kind == "file"}
    height = max(len(sources) * SOURCE, len(commits) * COMMIT, len(rows) * FILE)
    left_bands, right_bands = found.left or found.bands, found.right or found.bands
    scale = _scale([*left_bands, *right_bands])
    first = _Column(sources, SOURCE - 8, scale)
    middle = _Column(commits, COMMIT - 8, scale)
    last = _Column(files, FILE, scale)
    order = {"source": list(sources), "commit": list(commits), "file": list(files)}
    ranks = {name: {one: n for n, one in enumerate(names)} for name, names in order.items()}

    def by(bands: Sequence[MapBand], *names: str) -> list[MapBand]:
        values = {"source": "source", "commit": "commit", "file": "path"}

        def key(band: MapBand) -> tuple[int, ...]:
            return tuple(ranks[name].get(getattr(band, values[name]), -1) for name in names)

        return sorted(bands, key=key)

    out_left = first.ends(by(left_bands, "source", "commit", "file"), lambda band: band.source)
    in_commit = middle.ends(by(left_bands, "commit", "source", "file"), lambda band: band.commit)
    out_commit = middle.ends(by(right_bands, "commit", "file", "source"), lambda band: band.commit)
    in_file = last.ends(by(right_bands, "file", "commit", "source"), lambda band: band.path)
    left = list(_paths(found, out_left, in_commit))
    right = list(_paths(found, out_commit, in_file))
    return MapDrawing(height, left, right)


def _scale(bands: Sequence[MapBand]) -> float:
    """Fewer pixels for a line where there are many."""
    most = max((band.lines for band in bands), default=1)
    return min(_LINE, 30 / most)


def _paths(
    found: BranchMap,
    begin: dict[MapBand, tuple[float, float]],
    end: dict[MapBand, tuple[float, float]],
) -> Iterator[DrawnBand]:
    """Yield the bands; those of the selected session last, above the others."""
    titles = {source.name: source.title or "a session" for source in found.sources}
    subjects = {commit.sha: commit.subject for commit in found.commits}
    for band in sorted(begin, key=lambda band: band.source == found.selected):
        (y0, h0), (y1, h1) = begin[band], end[band]
        half = WIDE / 2
        path = (
            f"M0 {y0:.1f}C{half} {y0:.1f} {half} {y1:.1f} {WIDE} {y1:.1f}V{y1 + h1:.1f}"
            f"C{half} {y1 + h1:.1f} {half} {y0 + h0:.1f} 0 {y0 + h0:.1f}Z"
        )
        style = "you" if band.source == BY_HAND else band.source.split(":")[0] or "several"
        lines = f"{band.lines} line" + ("s" if band.lines != 1 else "")
        what = f"{lines} of {band.path}" if band.path else lines
        title = f"{titles.get(band.source, 'Several')}: {what} in {subjects[band.commit]}"
        yield DrawnBand(style, path, band.source == found.selected, title)
