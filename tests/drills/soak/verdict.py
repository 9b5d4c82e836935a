"""Whether hours change a node: the soak's table by quarters, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from tests.drills.soak.ledger import Ledger
from tests.drills.soak.samples import NodeSample, Sample

#: What is compared: around the middle, when what a node fills once is full, and at the end; as shares of the time.
_MIDDLE, _END = (0.35, 0.45), (0.9, 1.01)
#: What a node has in use of its memory may grow by less than that in between. Its resident memory may only be remarked upon:
#: it counts what allocators keep (`measured`).
MEMORY_GROWTH_KIB = 1024
#: Files are opened for a moment, and a status that was never answered before has a series.
DESCRIPTORS_GROWTH, SERIES_GROWTH = 8, 8
#: How much of the second quarter's p99 the last one's may be, and what is less than that differs by chance.
LAG_RATIO, LAG_LEAST_MS = 1.5, 50.0
#: With more of the machine's time stolen, or busy as a whole, a lag is no fault of a node's.
STEAL_MAX, BUSY_MAX = 0.05, 0.9
TURNOVERS = 5
#: Where something was lost so shortly before, a second call of an attempt has its reason.
_REASON_SAMPLES = 3


@dataclass
class Verdict:
    """What the soak found: broken promises, and what is only remarkable."""

    wrong: list[str]
    remarks: list[str]


def _within(samples: Sequence[Sample], shares: tuple[float, float]) -> list[Sample]:
    first, length = samples[0].at, samples[-1].at - samples[0].at
    return [each for each in samples if shares[0] * length <= each.at - first < shares[1] * length]


def quarters(samples: Sequence[Sample]) -> list[list[Sample]]:
    """The samples of each quarter of the time."""
    return [_within(samples, (quarter / 4, (quarter + 1) / 4 + (quarter == 3))) for quarter in range(4)]


def table(samples: Sequence[Sample], ledger: Ledger) -> str:
    """What was measured in each quarter: medians, the highest of stalls, what was purged within it."""
    parts = quarters(samples)
    rows = [["", "1st", "2nd", "3rd", "4th quarter"]]

    def row(name: str, value: Callable[[list[Sample]], float], digits: int = 0) -> None:
        rows.append([name, *(f"{value(part):,.{digits}f}" if part else "-" for part in parts)])

    for number in range(len(samples[0].nodes)):
        _rows_of_a_node(row, number)
    for name in sorted({name for sample in samples for name in sample.files}):
        row(f"{name}, MiB", lambda part, name=name: median(each.files.get(name, 0) for each in part) / 2**20, 2)
    row("lag p50, ms", lambda part: lag_ms(ledger, part, 0.5), 1)
    row("lag p99, ms", lambda part: lag_ms(ledger, part, 0.99), 1)
    row("longest stall of the drill, ms", lambda part: max(each.drill_stall_ms for each in part))
    row("busy, % of the machine", lambda part: 100 * median(each.busy for each in part))
    row("stolen, % of the machine", lambda part: 100 * median(each.steal for each in part), 1)
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        "  ".join([name.ljust(first), *(cell.rjust(width) for cell, width in zip(cells, others, strict=True))])
        for name, *cells in rows
    )


def _rows_of_a_node(row: Callable[[str, Callable[[list[Sample]], float], int], None], number: int) -> None:
    def middle(of: Callable[[NodeSample], float]) -> Callable[[list[Sample]], float]:
        return lambda part: median(of(each.nodes[number]) for each in part)

    named = f"node {number + 1}: "
    row(f"{named}memory in use, MiB", middle(lambda each: each.used_kib / 1024), 2)
    row(f"{named}resident, MiB", middle(lambda each: each.rss_kib / 1024), 2)
    row(f"{named}of it without files, MiB", middle(lambda each: each.heap_kib / 1024), 2)
    row(f"{named}descriptors beside connections", middle(lambda each: each.descriptors), 0)
    row(f"{named}connections", middle(lambda each: each.connections), 0)
    row(f"{named}threads", middle(lambda each: each.threads), 0)
    row(f"{named}series", middle(lambda each: len(each.series)), 0)
    row(f"{named}rows purged", lambda part: part[-1].nodes[number].purged - part[0].nodes[number].purged, 0)
    row(f"{named}log, KiB", middle(lambda each: each.log_bytes / 1024), 0)
    row(f"{named}longest stall, ms", lambda part: max(each.nodes[number].stall_ms for each in part), 0)


def lag_ms(ledger: Ledger, part: Sequence[Sample], share: float) -> float:
    """The lag that this share of the calls between the samples had at most; 0 without calls."""
    lags = ledger.lags_ms(part[0].at, part[-1].at)
    return lags[int(len(lags) * share)] if lags else 0.0


def broken(ledger: Ledger, now: int) -> list[str]:
    """The promises that were broken by now."""
    lost, skipped = ledger.overdue(now), ledger.skipped()
    wrong = [*ledger.wrong, *([f"lost: {len(lost)}, such as {lost[:5]}"] if lost else [])]
    wrong += [f"occurrences lost: {len(skipped)}, such as {skipped[:5]}"] if skipped else []
    # A checkout without the built pages has none to show.
    wrong += [
        f"{name}: {count}"
        for name, count in ledger.counted.items()
        if name.startswith("pages ") and name != "pages 200"
    ]
    return wrong + ([] if ledger.counted["events of pages"] else ["no event came to a page"])


def verdict(samples: Sequence[Sample], ledger: Ledger, now: int, *, turnovers: float) -> Verdict:
    """Judges a run that has ended. `turnovers`: how often retention has removed what was kept."""
    found = Verdict(broken(ledger, now), [])
    _duplicates(samples, found)
    middle, end = _within(samples, _MIDDLE), _within(samples, _END)
    for number in range(len(samples[0].nodes)):
        _growth(
            f"node {number + 1}", [each.nodes[number] for each in middle], [each.nodes[number] for each in end], found
        )
    parts = quarters(samples)
    before, after = lag_ms(ledger, parts[1], 0.99), lag_ms(ledger, parts[3], 0.99)
    if after > max(LAG_RATIO * before, LAG_LEAST_MS):
        words = f"the p99 of the lag was {before:.1f} ms in the second quarter and {after:.1f} ms in the last"
        steal, busy = (median(getattr(each, name) for each in (*parts[1], *parts[3])) for name in ("steal", "busy"))
        shared = steal > STEAL_MAX or busy > BUSY_MAX
        (found.remarks if shared else found.wrong).append(
            f"{words}, with {busy:.0%} of the machine busy, {steal:.0%} stolen"
        )
    if turnovers < TURNOVERS:
        found.remarks.append(f"retention turned over {turnovers:.1f} times only: run it for longer")
    return found


def _duplicates(samples: Sequence[Sample], found: Verdict) -> None:
    for index in range(1, len(samples)):
        earlier = samples[max(index - _REASON_SAMPLES, 0)]
        reasons = sum(node.reasons for node in samples[index].nodes) - sum(node.reasons for node in earlier.nodes)
        came = samples[index].duplicates - samples[index - 1].duplicates
        if came:
            words = f"{came} attempts arrived twice in sample {index}"
            (found.remarks if reasons else found.wrong).append(f"{words}, {'with' if reasons else 'without'} a reason")


def _growth(name: str, middle: list[NodeSample], end: list[NodeSample], found: Verdict) -> None:
    def grown(of: Callable[[NodeSample], int]) -> float:
        return median(map(of, end)) - median(map(of, middle))

    for kind, memory, judged in (
        ("memory in use", grown(lambda each: each.used_kib), found.wrong),
        ("resident memory", grown(lambda each: each.rss_kib), found.remarks),
    ):
        if memory >= MEMORY_GROWTH_KIB:
            judged.append(f"{name}: its {kind} grew by {memory / 1024:.2f} MiB between the middle and the end")
    if (descriptors := grown(lambda each: each.descriptors)) > DESCRIPTORS_GROWTH:
        found.wrong.append(f"{name}: {descriptors:.0f} descriptors more at the end than in the middle")
    if grown(lambda each: len(each.series)) > SERIES_GROWTH:
        new = sorted(end[-1].series - middle[0].series)
        found.wrong.append(f"{name}: {len(new)} series that it did not have in the middle, such as {new[:5]}")
