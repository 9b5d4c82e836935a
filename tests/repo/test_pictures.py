"""The pictures of the pages: there is one of each page, and those of the docs are taken by the same command."""

from __future__ import annotations

from urllib.parse import urlsplit

from tests.e2e.pictures import INCIDENT, SHOTS, SIGNED_IN_SHOTS, shown_by_docs
from tocsin.web.pages.pages import NAVIGATION

from .test_tidy import FILES

TAKEN = (INCIDENT, *SHOTS, *SIGNED_IN_SHOTS)


def test_each_page_of_the_navigation_has_a_picture() -> None:
    paths = {urlsplit(path).path for _, path, _ in TAKEN}
    assert [entry.path for group in NAVIGATION.values() for entry in group if entry.path not in paths] == []


def test_pictures_that_are_kept_are_shown_and_taken_by_the_command() -> None:
    names = [name for name, _, _ in TAKEN]
    assert len(names) == len(set(names))
    kept = {path.stem for path in FILES if path.parts[:2] == ("docs", "images") and path.suffix == ".png"}
    assert kept == shown_by_docs()
    assert kept <= set(names)
