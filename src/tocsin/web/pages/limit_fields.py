"""The fields of limits and batches in forms: for each key of a flow, for all of its keys, for a namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.model.batch import CallbackBatch
from tocsin.model.flow import FlowLimits
from tocsin.model.instants import format_duration
from tocsin.web.pages.context import whole_number
from tocsin.web.pages.presentation import whole_span

_FIELDS = {
    "rate.count": "attempts",
    "rate.per": "within",
    "burst": "burst",
    "parallelism": "in flight at once",
}


def limit_labels(path: str, words: str) -> dict[str, str]:
    """The fields of limits that stand at a path of the API's request, with their labels in a list of errors."""
    return {f"{path}.{name}": f"{words}: {label}" for name, label in _FIELDS.items()}


def limit_texts(path: str, limits: FlowLimits | None) -> dict[str, str]:
    """The fields as stored."""
    texts = dict.fromkeys(limit_labels(path, ""), "") | {f"{path}.rate.per": "1m"}
    if limits is None:
        return texts
    if limits.rate is not None:
        texts[f"{path}.rate.count"] = str(limits.rate.count)
        texts[f"{path}.rate.per"] = format_duration(limits.rate.per_us)
        texts[f"{path}.burst"] = str(limits.burst)
    if limits.parallelism is not None:
        texts[f"{path}.parallelism"] = str(limits.parallelism)
    return texts


def limit_body(path: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """The limits that the fields stand for, as the API reads them; empty for none."""
    limits: dict[str, Any] = {
        name: _number(texts[f"{path}.{name}"]) for name in ("burst", "parallelism") if texts[f"{path}.{name}"]
    }
    if texts[f"{path}.rate.count"]:
        limits["rate"] = {"count": _number(texts[f"{path}.rate.count"]), "per": texts[f"{path}.rate.per"]}
    return limits


def limits_in_words(limits: FlowLimits | None) -> str:
    """The limits in a cell of a table; empty for none."""
    if limits is None:
        return ""
    parts = []
    if limits.rate is not None:
        burst = f", {limits.burst} at once" if limits.burst > 1 else ""
        parts.append(f"{limits.rate.count:,} in {whole_span(limits.rate.per_us)}{burst}")
    if limits.ordered:
        parts.append("in order")
    elif limits.parallelism is not None:
        parts.append(f"{limits.parallelism:,} in flight")
    return "; ".join(parts)


#: The fields of a batch, with their labels in a list of errors.
BATCH_LABELS = {"callbackBatch.max": "Sent together: timers", "callbackBatch.linger": "Sent together: within"}


def batch_texts(batch: CallbackBatch | None) -> dict[str, str]:
    """The fields as stored; empty where callbacks are sent one by one."""
    if batch is None:
        return dict.fromkeys(BATCH_LABELS, "")
    return {"callbackBatch.max": str(batch.items), "callbackBatch.linger": format_duration(batch.linger_us)}


def batch_body(texts: Mapping[str, str]) -> dict[str, Any] | None:
    """The batch that the fields stand for, as the API reads it; None for none."""
    most, linger = texts["callbackBatch.max"], texts["callbackBatch.linger"]
    if not most:
        return None
    return {"max": _number(most)} | ({"linger": linger} if linger else {})


def batch_in_words(batch: CallbackBatch | None) -> str:
    """The batch in a sentence or a cell of a table; empty for none."""
    return "" if batch is None else f"up to {batch.items} in a request, within {whole_span(batch.linger_us)}"


def _number(text: str) -> int | str:
    return whole_number(text) if text.isdecimal() else text
