"""Metrics of the databases that are files: their sizes, and the space that is left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

#: Gauges of databases in files: name, help.
DISK_GAUGES: dict[str, str] = {
    "tocsin_store_bytes": "Size of SQLite's files, by file: database, wal (its write-ahead log), agent_database, agent_wal. "
    "Space of deleted rows is used again, but a database file does not shrink. Absent with a database server.",
    "tocsin_store_free_bytes": "Free space of the disk that has the SQLite files. Absent with a database server.",
}


class DiskMetrics(Collector):
    """Measures these databases, by the name in their label, with their logs at each scrape: a few calls about local files
    that are open anyway. A file that is missing has no series."""

    def __init__(self, databases: Mapping[str, Path]) -> None:
        logs = {
            f"{name.removesuffix('database')}wal": path.with_name(f"{path.name}-wal")
            for name, path in databases.items()
        }
        self._files = {**databases, **logs}

    def collect(self) -> Iterator[Metric]:
        """The metric families, for the registry."""
        sizes = GaugeMetricFamily("tocsin_store_bytes", DISK_GAUGES["tocsin_store_bytes"], labels=["file"])
        free: list[int] = []
        for name, path in self._files.items():
            try:
                sizes.add_metric([name], path.stat().st_size)
                free.append(shutil.disk_usage(path).free)
            except FileNotFoundError:
                continue
        yield sizes
        space = GaugeMetricFamily("tocsin_store_free_bytes", DISK_GAUGES["tocsin_store_free_bytes"])
        if free:
            # On two disks, the one that fills first.
            space.add_metric([], min(free))
        yield space
