"""The repository keeps its own rules."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from tocsin.ports.store import FORMAT

ROOT = Path(__file__).parents[2]
FILES = [
    Path(name)
    for name in subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    if (ROOT / name).is_file()
]
TEXTS = [path for path in FILES if path.suffix not in {".png", ".ico", ".woff2", ".gz"}]
SOURCES = [path for path in FILES if path.suffix == ".py" and path.parts[0] == "src"]
PAGES = [path for path in FILES if path.suffix == ".md"]
PACKAGES = [ROOT / "src" / "tocsin", ROOT / "sdks" / "python" / "src" / "tocsin_client"]


def read(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_no_comment_contains_a_todo() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    assert [str(path) for path in TEXTS if path != Path("tests/repo/test_tidy.py") and marks.search(read(path))] == []


def test_modules_of_tests_outside_of_packages_have_names_of_their_own() -> None:
    """pytest imports them by their file's name alone, so that of two the second one would not be collected."""
    found: dict[str, list[str]] = {}
    for path in FILES:
        if path.suffix == ".py" and path.name.startswith("test_") and not (ROOT / path.parent / "__init__.py").exists():
            found.setdefault(path.name, []).append(str(path))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_no_file_names_a_registry_or_a_local_folder() -> None:
    words = ["python" + "hosted", "py" + "pi.org", "registry." + "npmjs", "/" + "home/", "/" + "root/", "/" + "work/"]
    found = [(str(path), word) for path in TEXTS for word in words if word in read(path)]
    assert found == []


def test_lock_files_pin_with_hashes_and_without_addresses() -> None:
    peers = (ROOT / "bench" / "peers").glob("requirements-*.txt")
    for path in [*(ROOT / "requirements").glob("*.txt"), *(ROOT / "examples").rglob("requirements.txt"), *peers]:
        text = path.read_text()
        pinned = re.findall(r"^([a-z0-9._-]+)==", text, re.MULTILINE)
        assert pinned, path
        assert text.count("--hash=sha256:") >= len(pinned)
        assert "://" not in text


def prose_of(page: Path) -> str:
    """The page without its code."""
    return re.sub(r"^ *```.*?^ *```", "", read(page), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The fragments by which links can name a place on the page."""
    prose = prose_of(page)
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in re.findall(r"^#+ (.*)$", prose, re.MULTILINE)]
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r'id="([^"]+)"', prose))


def test_links_between_pages_resolve() -> None:
    dead = []
    for page in PAGES:
        for target, fragment in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", prose_of(page)):
            if "://" in target:
                continue
            path = (ROOT / page.parent / target).resolve() if target else ROOT / page
            # API references, which the site's build makes, and where MkDocs checks the links.
            if path.is_relative_to(ROOT / "docs/sdks/api"):
                continue
            known = path.exists() and (
                path.suffix != ".md" or not fragment or fragment in anchors(path.relative_to(ROOT))
            )
            if not known:
                dead.append((str(page), target, fragment))
    assert dead == []


def test_templates_import_only_what_they_use() -> None:
    unused = []
    for template in (ROOT / "src/tocsin/web/pages/templates").rglob("*.html"):
        text = template.read_text()
        for names in re.findall(r'{% from "[^"]+" import (.*?)(?: with context)? %}', text):
            unused += [(template.name, name) for name in names.split(", ") if len(re.findall(rf"\b{name}\b", text)) < 2]
    assert unused == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_files_that_pages_for_developers_name_exist(page: str) -> None:
    named = re.findall(r"`([\w.*/-]+/[\w.*-]*)`", read(Path(page)))
    assert named
    made = ("build/", ".venv/")  # by make
    missing = [
        name
        for name in named
        if "NAME" not in name
        and "NNNN" not in name
        and not name.startswith(made)
        and not any(True for folder in (ROOT, *PACKAGES) for _ in folder.glob(name))
    ]
    assert missing == []


def test_files_are_limited_in_length() -> None:
    # The window has all of its transitions in one place on purpose.
    most = {Path("src/tocsin/timers/engine/window.py"): 640}
    long = {
        str(path): len(read(path).splitlines())
        for path in FILES
        if path.suffix == ".py" and "_generated" not in path.parts
    }
    assert {path: lines for path, lines in long.items() if lines > most.get(Path(path), 600)} == {}


def test_constructors_have_at_most_nine_parameters() -> None:
    # Options come together in a dataclass, as the settings hold them.
    long = {}
    for path in SOURCES:
        for kind in ast.walk(ast.parse(read(path))):
            for method in kind.body if isinstance(kind, ast.ClassDef) else ():
                if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "__new__"):
                    taken = method.args
                    count = len([*taken.posonlyargs, *taken.args, *taken.kwonlyargs]) - 1
                    long |= {f"{path}: {kind.name}": count} if count > 9 else {}
    assert long == {}


def test_the_core_gets_time_and_randomness_from_its_ports() -> None:
    banned = re.compile(
        r"^\s*(?:import time|from time |import secrets|from datetime import .*\bnow\b)|random\.random\(\)$"
    )
    for path in SOURCES:
        if path.parts[2] in {"engine", "ports"} or path.parts[2:] == ("service.py",):
            wrong = [
                line
                for line in read(path).splitlines()
                if banned.search(line) and "context.random.random()" not in line
            ]
            assert wrong == [], path


def test_no_product_code_blocks_in_sleep() -> None:
    assert [
        str(path) for path in SOURCES if "time.sleep(" in read(path) and path.parts[2] not in {"cli", "testing"}
    ] == []


def test_decision_records_are_numbered_and_the_gaps_are_listed() -> None:
    names = sorted(path.name for path in (ROOT / "docs" / "adr").glob("0*.md"))
    numbers = [int(name[:4]) for name in names]
    listed = [int(number) for number in re.findall(r"^- (\d+):", read(ROOT / "docs/adr/README.md"), re.MULTILINE)]
    assert sorted([*numbers, *listed]) == list(range(1, max(numbers) + 1))


def test_every_decision_record_has_a_decision() -> None:
    for path in (ROOT / "docs" / "adr").glob("0*.md"):
        text = path.read_text()
        assert text.startswith(f"# {int(path.name[:4])}. "), path
        assert all(f"**{word}" in text for word in ("Status", "Context", "Decision", "Consequences")), path


def _locked(name: str) -> set[tuple[str, str]]:
    text = (ROOT / "requirements" / name).read_text()
    return set(re.findall(r"^([a-z0-9-]+)==([0-9.]+)", text, re.M))


def test_what_make_run_installs_is_locked_as_in_the_image_without_the_drivers() -> None:
    base = _locked("base.txt")
    assert base < _locked("main.txt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared, drivers = (
        {re.split(r"[\[<>=!;]", each)[0] for each in names}
        for names in (project["dependencies"], chain(*project["optional-dependencies"].values()))
    )
    assert declared <= {name for name, _ in base} and not drivers & {name for name, _ in base}


def test_network_libraries_are_not_older_than_the_lock() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    bounds = dict(re.findall(r"^([a-z0-9-]+)>=([0-9.]+)", "\n".join(declared), re.M))
    locked = dict(_locked("main.txt"))
    network = {"asyncpg", "h11", "httptools", "httpx", "jinja2", "msgspec", "nats-py", "starlette", "uvicorn", "uvloop"}
    for name in network:
        assert locked[name].split(".")[:2] == bounds[name].split(".")[:2], (
            f"raise {name} in pyproject.toml to the lock's"
        )


def test_the_upgrade_drill_begins_at_a_revision_of_the_present_format() -> None:
    drill = re.search(r'^REVISION = "(\w+)"$', read(Path("tests/drills/upgrade.py")), re.MULTILINE)
    assert drill is not None
    former = subprocess.run(
        ["git", "show", f"{drill[1]}:src/tocsin/ports/store.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if former.returncode and (ROOT / ".git" / "shallow").exists():
        pytest.skip("a shallow clone lacks the drill's revision")
    assert f"\nFORMAT = {FORMAT}\n" in former.stdout, "set REVISION to a commit that stores data as this one does"
