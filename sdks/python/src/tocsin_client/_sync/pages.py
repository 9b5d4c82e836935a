# Made from _async/pages.py by unasync.py; edit that.
"""Lists that are longer than an answer."""

from __future__ import annotations

from collections.abc import Iterator, Callable
from typing import Generic, TypeVar

from tocsin_client._sync.runner import Runner
from tocsin_client._core.steps import Steps

Element = TypeVar("Element")


class Pages(Generic[Element]):
    """All elements, read page by page while they are iterated over. Each iteration starts over."""

    def __init__(self, runner: Runner, fetch: Callable[[str | None], Steps[tuple[list[Element], str | None]]]) -> None:
        self._runner = runner
        self._fetch = fetch

    def pages(self) -> Iterator[list[Element]]:
        """The pages; one may be empty without being the last."""
        cursor: str | None = None
        while True:
            page, cursor = self._runner.run(self._fetch(cursor))
            yield page
            if cursor is None:
                return

    def __iter__(self) -> Iterator[Element]:
        for page in self.pages():
            for element in page:
                yield element
