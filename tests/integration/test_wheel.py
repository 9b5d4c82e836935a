"""The wheel alone, installed outside of the checkout, serves the API and the pages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.needs import lacking
from tests.support.server import ServerProcess
from tocsin.server.extras import MODULES
from tocsin.settings.declared import env_name

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "src" / "tocsin" / "web" / "pages" / "static" / "manifest.json"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
UV = Path(sys.executable).with_name("uv")


def _run(*command: object, **env: str) -> str:
    ran = subprocess.run(
        [str(word) for word in command], env=os.environ | env, capture_output=True, text=True, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the programs of a new environment with the wheel, which was built from the sdist."""
    if not PAGES.exists():
        lacking("pages", "the web pages are not built; run `make web`")
    folder = tmp_path_factory.mktemp("wheel")
    _run(
        UV, "build", "--quiet", "--offline", "--no-build-isolation", "--python", sys.executable, "--out-dir", folder, ROOT,
        TOCSIN_BUILD_COMMIT=COMMIT,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    assert list(folder.glob("*.tar.gz"))
    _run(UV, "venv", "--quiet", "--offline", "--python", sys.executable, folder / "env")
    _run(
        UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", folder / "env" / "bin" / "python", wheel
    )
    link_dependencies(next(folder.glob("env/lib/python*/site-packages")))
    yield folder / "env" / "bin"


def link_dependencies(packages: Path) -> None:
    """Links what the wheel in `packages` requires, without extras, from this environment: no index is needed."""
    done = set()
    waiting = [*metadata.distributions(name="tocsin", path=[str(packages)])]
    while waiting:
        for requirement in map(Requirement, waiting.pop().requires or ()):
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if needed and (name := canonicalize_name(requirement.name)) not in done:
                done.add(name)
                installed = metadata.distribution(name)
                waiting.append(installed)
                for top in {path.parts[0] for path in installed.files or ()} - {"..", "__pycache__"}:
                    (packages / top).symlink_to(installed.locate_file(top))


async def test_serves_the_api_and_the_pages_and_names_its_build(installed: Path, tmp_path: Path) -> None:
    version = json.loads(_run(installed / "tocsin", "version", "--json"))
    assert version["commit"] == COMMIT
    assert str(installed.parent) in _run(installed / "python", "-c", "import tocsin; print(tocsin.__file__)")
    server = ServerProcess(tmp_path, "--no-agent", program=(str(installed / "tocsin"),))
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.url) as client:
            timer = {
                "namespace": "default",
                "id": "t",
                "executeAt": "2040-01-01T00:00:00Z",
                "callbackUrl": "http://a.example",
            }
            assert (await client.post("/api/v1/timers/create", json=timer)).status_code == 200
            page = await client.get("/timers", headers={"accept": "text/html"})
            assert f"Tocsin {version['tocsin']} ({COMMIT[:12]})" in page.text
            assets = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css))"', page.text)
            assert assets
            assets.append("/api/v1/openapi.json")
            for asset in assets:
                assert (await client.get(asset)).status_code == 200
            metrics = (await client.get("/metrics")).text
            assert re.search(
                rf'tocsin_build_info{{commit="{COMMIT}",python="[\d.]+",version="{version["tocsin"]}"}} 1', metrics
            )
    finally:
        assert await server.stop() == 0


#: A setting that requires each extra, its value, and the module that the refusal names.
EXTRAS = {
    "postgresql": ("store", "postgresql://tocsin@127.0.0.1/tocsin", "asyncpg"),
    "mysql": ("store", "mysql://tocsin@127.0.0.1/tocsin", "asyncmy"),
    "dynamodb": ("store", "dynamodb://eu-west-1", "aiobotocore"),
    "cassandra": ("store", "cassandra://127.0.0.1/tocsin", "cassandra"),
    "mongodb": ("store", "mongodb+srv://db.example/tocsin", "pymongo"),
    "nats": ("broker", "nats://127.0.0.1:4222", "nats"),
    "mcp": ("mcp.enabled", "true", "mcp"),
    "otel": ("tracing.endpoint", "http://127.0.0.1:4318", "opentelemetry.sdk"),
    "oidc": ("oidc.issuer", "https://login.example.com", "authlib"),
}
#: Settings that the one of an extra requires.
ALSO_REQUIRED = {"oidc": {"TOCSIN_OIDC_CLIENT_ID": "tocsin", "TOCSIN_OIDC_GRANTS": "ops=admin"}}
#: Extras that a command requires, and no setting.
OF_COMMANDS = {"ical": (["calendars", "import", "holidays.ics"], "recurring_ical_events")}


@pytest.mark.timeout(300)  # It starts twelve processes.
def test_a_missing_extra_is_named_with_its_command_before_anything_is_touched(installed: Path, tmp_path: Path) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    native = declared.pop("native")
    assert native == [f"tocsin-native=={tomllib.loads((ROOT / 'native/Cargo.toml').read_text())['package']['version']}"]
    assert declared.pop("all") == [f"tocsin[{','.join(declared)}]"]
    assert {*EXTRAS, *OF_COMMANDS} == set(MODULES) == set(declared)
    wrong = {}
    for extra, (setting, value, module) in EXTRAS.items():
        folder = tmp_path / extra
        options = {env_name(setting.replace(".", "_")): value, "TOCSIN_DATA_DIR": str(folder), "TOCSIN_PORT": "0"}
        options |= ALSO_REQUIRED.get(extra, {})
        expected = f"{setting}: {module} is not installed; run: pip install 'tocsin[{extra}]'\n"
        for command in ("serve", "migrate") if setting == "store" else ("serve",):
            program = [str(installed / "tocsin"), command]
            ran = subprocess.run(program, env=os.environ | options, capture_output=True, text=True, timeout=100)
            if ran.returncode == 0 or not ran.stderr.endswith(expected) or folder.exists():
                wrong[extra, command] = (ran.returncode, ran.stderr)
    for extra, (words, module) in OF_COMMANDS.items():
        ran = subprocess.run([str(installed / "tocsin"), *words], capture_output=True, text=True, timeout=100)
        if ran.returncode == 0 or f"{module} is not installed; run: pip install 'tocsin[{extra}]'\n" not in ran.stderr:
            wrong[extra, words[0]] = (ran.returncode, ran.stderr)
    assert wrong == {}
    environment = os.environ | {"TOCSIN_STORE": EXTRAS["mysql"][1], "TOCSIN_BIN": "/opt/tocsin"}
    program = [str(installed / "tocsin"), "config", "check"]
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=100, check=True)
    assert ran.stderr == "Warning: store: asyncmy is not installed; run: pip install 'tocsin[mysql]'\n"


def test_a_plain_install_takes_less_than_100_mb(installed: Path) -> None:
    def size(path: Path) -> int:
        return sum(map(size, path.iterdir())) if path.is_dir() else path.stat().st_size

    packages = next(installed.parent.glob("lib/python*/site-packages"))
    sizes = {path.name: size(path) for path in packages.iterdir()}
    assert sum(sizes.values()) < 100e6, sorted(sizes.items(), key=lambda each: -each[1])[:10]


def test_has_a_bill_of_materials_of_the_locked_dependencies(installed: Path) -> None:
    (found,) = installed.parent.glob("lib/python*/site-packages/tocsin-*.dist-info/sboms/*.json")
    bill = json.loads(found.read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    purls = {component["purl"] for component in bill["components"]}
    assert set(bill["dependencies"][0]["dependsOn"]) == purls
    locked = re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", (ROOT / "requirements" / "main.txt").read_text(), re.MULTILINE)
    assert {f"pkg:pypi/{name}@{release}" for name, release in locked} <= purls
    assert any(purl.startswith("pkg:npm/htmx.org@") for purl in purls)
    assert not any("esbuild" in purl for purl in purls)


def test_the_build_is_refused_without_the_pages(tmp_path: Path) -> None:
    for path in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src/tocsin/__init__.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    command = [UV, "build", "--offline", "--no-build-isolation", "--python", sys.executable, tmp_path]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert ran.returncode != 0
    assert "src/tocsin/web/pages/static/manifest.json is missing: build the web pages with `make web`" in ran.stderr
