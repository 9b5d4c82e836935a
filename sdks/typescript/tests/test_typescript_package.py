"""The package outside of the checkout: its types and modules resolve, and its public types are exact."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from typescript_tools import SDK, run

# Building takes a while on a slow machine.
pytestmark = pytest.mark.timeout(300)

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


#: How programs are compiled to CommonJS: as before Node.js had ES modules, and beside these.
TO_COMMONJS = {
    "node10": ({"module": "commonjs", "moduleResolution": "node10"}, "commonjs.ts"),
    "node16": ({"module": "node16"}, "commonjs.cts"),
}


@pytest.mark.parametrize("way", TO_COMMONJS)
def test_programs_in_commonjs(built, project, way):
    options, name = TO_COMMONJS[way]
    folder = project / way
    folder.mkdir()
    (folder / "package.json").write_text("{}")
    shutil.copy(CONSUMER / "commonjs.cts", folder / name)
    options = {**STRICT, **options, "noEmit": False, "lib": ["ES2022"], "types": ["node"], "skipLibCheck": True}
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": [name]}))
    run(str(built / "node_modules/.bin/tsc"), cwd=folder)
    program = name.replace("ts", "js")
    # The second way gives the modules that bundlers and test runners get, which load no ES module by `require`.
    for flags in [], ["--no-experimental-require-module"]:
        assert json.loads(run("node", *flags, program, cwd=folder)) == [{"ok": True}, True, True]


def test_require_and_import_give_one_copy_in_node(project):
    program = """
        const assert = require("node:assert/strict");
        const parts = ["", "/errors", "/outbox", "/receiver", "/testing"].map((part) => `tocsin-client${part}`);
        Promise.all(parts.map(async (part) => {
          const required = require(part);
          const imported = await import(part);
          assert.ok(Object.keys(required).length > 3);
          for (const name of Object.keys(required)) assert.equal(required[name], imported[name], name);
        })).then(() => console.log("one"));
    """
    assert run("node", "--input-type=commonjs", "--eval", program, cwd=project) == "one\n"


def test_every_tool_finds_modules_and_types(built, project):
    tools = built / "node_modules/.bin"
    (tarball,) = project.glob("*.tgz")
    assert "No problems found" in run(str(tools / "attw"), str(tarball), "--format", "ascii", cwd=project)
    assert "All good!" in run(str(tools / "publint"), "run", str(tarball), "--strict", cwd=project)


def test_what_is_in_the_package(project):
    package = project / "node_modules/tocsin-client"
    found = {path.name for path in package.iterdir()}
    assert found == {"CHANGELOG.md", "LICENSE", "README.md", "dist", "package.json"}
    manifest = json.loads((package / "package.json").read_text())
    assert manifest.get("dependencies", {}) == {} and manifest["type"] == "module"
    for built in "dist", "dist/cjs":
        assert f'VERSION = "{manifest["version"]}"' in (package / built / "version.js").read_text()
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
