"""What MkDocs asks while it builds the site: the navigation of folders whose pages have a natural order, links that leave the
docs, and the API references of the SDKs, which are made from their sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File
from mkdocs.structure.nav import Link, Section

#: A link to a file of the checkout that is not part of the site.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./){2,}(?:(?:examples|sdks|deploy|bench)/|[A-Z]+\.md)[^)]*\)")

#: Where `make references` leaves those of the other languages.
_REFERENCES = Path(__file__).parents[1] / "build/references"
_NOT_BUILT = "This site was built on a machine without the tools of the language, so the reference is missing."
#: Those that are sites of their own, with the titles of their first pages.
_SITES = {
    "TypeScript API": "typescript",
    "Java API": "java/tocsin-client",
    "Java API of tocsin-servlet": "java/tocsin-servlet",
}
_PYTHON = Path(__file__).parents[1] / "sdks/python/src/tocsin_client"
#: The client of which the other's reference would be a copy.
_CLIENT = _PYTHON / "_sync/client.py"


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


def on_files(files: Any, config: Any) -> Any:
    """Adds the API references."""
    go = _REFERENCES / "go.md"
    go_api = go.read_text(encoding="utf-8") if go.exists() else f"# Go API\n\n{_NOT_BUILT}\n"
    files.append(File.generated(config, "sdks/api/python.md", content=_python_api()))
    files.append(File.generated(config, "sdks/api/go.md", content=go_api))
    for title, folder in _SITES.items():
        for name, content in _of_site(title, _REFERENCES / folder):
            files.append(File.generated(config, f"sdks/api/{folder}/{name}", **content))
    return files


def _python_api() -> str:
    """What mkdocstrings makes the page of: the client, what it has as attributes, and the public modules."""
    source = _CLIENT.read_text(encoding="utf-8")
    modules = {
        name.strip(): module
        for module, names in re.findall(r"^from (tocsin_client\._sync\.\w+) import (.+)$", source, re.MULTILINE)
        for name in names.split(",")
    }
    parts = re.findall(r"^        self\.(\w+): (\w+) = ", source, re.MULTILINE)
    parts += re.findall(r"^    def (calls)\(.*-> (\w+):$", source, re.MULTILINE)
    lines = ["# Python API", ""]
    lines += ["`AsyncClient` has the same methods as `Client`, as coroutines.", ""]
    lines += ["::: tocsin_client", ""]
    for attribute, name in parts:
        heading = "client.calls(tenant_id)" if attribute == "calls" else f"client.{attribute}"
        lines += [f"::: {modules[name]}.{name}", "    options:", f'      heading: "{heading}"']
        # How it is constructed is the client's affair.
        lines += ["      merge_init_into_class: false", "      show_bases: false", ""]
    lines += [f"::: tocsin_client.{name}\n" for name in ("errors", "models", "outbox", "receiver", "testing")]
    return "\n".join(lines)


def _of_site(title: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    if not (folder / "index.html").exists():
        yield "index.html", {"content": f"<!doctype html><title>{title}</title><p>{_NOT_BUILT}"}
        return
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != ".ready":
            # The licences of javadoc's scripts are Markdown; MkDocs must not take them for pages.
            name = re.sub(r"\.md$", ".txt", path.relative_to(folder).as_posix())
            yield name, {"abs_src_path": str(path)}


def on_nav(nav: Any, **_: Any) -> Any:
    """Adds the API references that are no pages of this site to those that are."""
    (sdks,) = (item for item in nav.items if isinstance(item, Section) and item.title == "SDKs")
    (api,) = (item for item in sdks.children if isinstance(item, Section) and item.title == "API references")
    for title, folder in _SITES.items():
        link = Link(title, f"sdks/api/{folder}/index.html")
        link.parent = api
        api.children.append(link)
    return nav


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leaves the words of links to files that the site does not have."""
    return _OUTSIDE.sub(r"\1", markdown)
