"""The package outside of the checkout: its types and modules resolve, and its public types are exact."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from typescript_tools import SDK, run

CONSUMER = Path(__file__).parent / "consumer"
STRICT = {
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "exactOptionalPropertyTypes": True,
    "noEmit": True,
    "target": "ES2022",
}
#: How programs are compiled: on servers with Node.js' types, and for bundlers with those of the web only.
WAYS = {
    "node16": ({"module": "node16", "lib": ["ES2022"], "types": ["node"], "skipLibCheck": True}, "servers.ts"),
    "bundler": (
        {"module": "esnext", "moduleResolution": "bundler", "lib": ["ES2022", "DOM"], "types": []},
        "client.ts",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_types(built, project, way):
    options, *files = WAYS[way]
    for source in CONSUMER.iterdir():
        shutil.copy(source, project)
    config = project / f"tsconfig.{way}.json"
    config.write_text(json.dumps({"compilerOptions": {**STRICT, **options}, "files": ["client.ts", *files]}))
    run(str(built / "node_modules/.bin/tsc"), "--project", config.name, cwd=project)


def test_what_is_in_the_package(project):
    package = project / "node_modules/tocsin-client"
    found = {path.name for path in package.iterdir()}
    assert found == {"CHANGELOG.md", "LICENSE", "README.md", "dist", "package.json"}
    manifest = json.loads((package / "package.json").read_text())
    assert manifest.get("dependencies", {}) == {} and manifest["type"] == "module"
    assert f'VERSION = "{manifest["version"]}"' in (package / "dist/version.js").read_text()
    loose = re.compile(r"\bany\b")
    for declared in package.glob("dist/**/*.d.ts"):
        assert not loose.search(code_of(declared)), declared.name


def test_modules_of_the_platform_are_for_tests_only():
    """Edge runtimes have none of Node.js."""
    for source in (SDK / "src").rglob("*.ts"):
        if source.name != "testing.ts":
            assert not re.search(r'from "node:|\b(Buffer|process)\b\.', code_of(source)), source.name


def code_of(path):
    """Without comments."""
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)


def test_unit_tests(built):
    tests = sorted(str(path) for path in Path(__file__).parent.glob("*.test.mjs"))
    assert tests
    run("node", "--test", "--test-timeout=60000", *tests, cwd=built)
