"""What MkDocs asks while it builds the site: the navigation of folders whose pages have a natural order, and links that leave
the docs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

#: A link to a file of the checkout that is not part of the site.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./){2,}(?:(?:examples|sdks|deploy|bench)/|[A-Z]+\.md)[^)]*\)")


def on_config(config: Any) -> Any:
    """Replaces each folder in the navigation by its pages: README first, then by name."""
    config.nav = _expanded(config.nav, Path(config.docs_dir))
    return config


def _expanded(item: Any, docs: Path) -> Any:
    if isinstance(item, list):
        return [_expanded(one, docs) for one in item]
    if isinstance(item, dict):
        return {title: _expanded(value, docs) for title, value in item.items()}
    if item.endswith("/"):
        pages = sorted((docs / item).glob("*.md"), key=lambda path: (path.stem != "README", path.name))
        return [str(path.relative_to(docs)) for path in pages]
    return item


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leaves the words of links to files that the site does not have."""
    return _OUTSIDE.sub(r"\1", markdown)
