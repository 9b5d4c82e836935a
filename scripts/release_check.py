"""Builds the packages of the SDKs from the last commit, and checks what their registries and users ask: `make release-check`.

    python scripts/release_check.py [LANGUAGE …] [--tag TAG]

The packages are left in `build/release/LANGUAGE`, their bills of materials in `build/release/sboms`. With `--tag`, such as
`sdks/go/v0.2.0`, the tag has to be that of the version, and the changelog has to begin with it.
"""

from __future__ import annotations

import argparse
import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import sdk_sboms

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build/release"
EXPORT = OUTPUT / "export"
REPOSITORY = "https://github.com/tocsin-dev/tocsin"
GO_MODULE = "tocsin.dev/go"
_VERSION = r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?"
#: Of Maven's help plugin, which no pom of ours uses.
_EFFECTIVE_POM = "org.apache.maven.plugins:maven-help-plugin:3.5.1:effective-pom"


class Failed(Exception):
    """A package is not as it has to be."""


class Sdk(NamedTuple):
    """What is checked of one language. `requires` are programs that it needs, `constant` is the file with the version that
    clients send as their user agent, and how it is written there, `mentions` how README and the page of the docs write it."""

    check: Callable[[Path, Path, str], None]
    requires: tuple[str, ...]
    constant: tuple[str, str]
    mentions: str = ""


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Returns what the command prints. Raises Failed with its output if it fails."""
    ran = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ran.returncode:
        raise Failed(f"{' '.join(map(str, command))} failed:\n{(ran.stdout + ran.stderr).strip()}")
    return ran.stdout


def require(holds: object, problem: str) -> None:
    """Raises Failed with the problem unless something holds."""
    if not holds:
        raise Failed(problem)


def write_sbom(name: str, content: str) -> None:
    (OUTPUT / "sboms").mkdir(exist_ok=True)
    (OUTPUT / f"sboms/{name}.cdx.json").write_text(content)


def version_of(folder: Path, sdk: Sdk) -> str:
    """The version that the client sends. Raises Failed unless the changelog's newest version is the same."""
    name, pattern = sdk.constant
    found = re.search(pattern, (folder / name).read_text())
    require(found, f"{name} has no version")
    version: str = found[1]  # type: ignore[index]
    newest = re.search(rf"^## ({_VERSION})\b", (folder / "CHANGELOG.md").read_text(), re.MULTILINE)
    require(newest and newest[1] == version, f"{name} has version {version}, CHANGELOG.md {newest and newest[1]}")
    return version


def check_tag(language: str, folder: Path, version: str, tag: str) -> None:
    """Raises Failed unless the tag is that of this version, which the changelog then begins with."""
    wanted = f"sdks/{language}/v{version}"
    require(tag == wanted, f"the tag is {tag}, the version's is {wanted}")
    first = re.search(r"^## (.*)$", (folder / "CHANGELOG.md").read_text(), re.MULTILINE)
    require(first and first[1].startswith(version), f"CHANGELOG.md begins with {first and first[1]!r}, not {version}")


def check_mentions(folder: Path, language: str, version: str, pattern: str) -> None:
    """Raises Failed if a page names another version."""
    for page in (folder / "README.md", EXPORT / f"docs/sdks/{language}.md"):
        for found in re.findall(pattern, page.read_text()):
            require(found == version, f"{page.relative_to(EXPORT)} names version {found}, the package has {version}")


def check_python(folder: Path, output: Path, version: str) -> None:
    run(sys.executable, "-m", "hatchling", "build", "--directory", output, cwd=folder)
    wheel, sdist = output / f"tocsin_client-{version}-py3-none-any.whl", output / f"tocsin_client-{version}.tar.gz"
    require({*output.iterdir()} == {wheel, sdist}, f"built were {sorted(path.name for path in output.iterdir())}")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=output)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        metadata = email.message_from_string(archive.read(f"{info}/METADATA").decode())
    require({"tocsin_client/py.typed", f"{info}/licenses/LICENSE"} <= names, "the wheel lacks py.typed or the licence")
    strange = {name for name in names if not name.startswith(("tocsin_client/", f"{info}/"))}
    require(not strange, f"the wheel has {sorted(strange)}")
    check_python_metadata(metadata.get_all("Project-URL", []), metadata.get_all("Classifier", []))
    require(metadata["License-Expression"] == "Apache-2.0", "the licence is not Apache-2.0")
    components = sdk_sboms.of_python(
        metadata.get_all("Requires-Dist", []), (EXPORT / "requirements/dev.txt").read_text()
    )
    name = metadata["Name"]
    write_sbom("python", sdk_sboms.bill(f"pkg:pypi/{name}@{version}", name, version, metadata["Summary"], components))


def check_python_metadata(urls: list[str], classifiers: list[str]) -> None:
    """Raises Failed if a link or the classifier of a Python version is missing."""
    links = dict(url.split(", ") for url in urls)
    for label in ("Documentation", "Source", "Issues", "Changelog"):
        require(label in links, f"the metadata has no URL {label}")
    for label in ("Source", "Issues", "Changelog"):
        require(links[label].startswith(REPOSITORY), f"{label} is {links[label]}, not below {REPOSITORY}")
    require(
        any(re.fullmatch(r"Programming Language :: Python :: 3\.\d+", one) for one in classifiers),
        "no classifier names a Python version",
    )


def check_typescript(folder: Path, output: Path, version: str) -> None:
    # The locked tools, which `make` installed, without which every check would take as long as the installation.
    (folder / "node_modules").symlink_to(ROOT / "sdks/typescript/node_modules")
    tools = folder / "node_modules/.bin"
    for tool in ("publint", "attw"):
        require((tools / tool).exists(), f"{tool} is not among the development dependencies of sdks/typescript")
    manifest = json.loads((folder / "package.json").read_text())
    check_manifest(manifest, version)
    run("npm", "pack", "--silent", "--pack-destination", output, cwd=folder)
    tarball = output / f"tocsin-client-{version}.tgz"
    require(tarball.exists(), f"npm pack made no {tarball.name}")
    with tarfile.open(tarball) as archive:
        names = set(archive.getnames())
    wanted = {f"package/{name}" for name in ("LICENSE", "README.md", "CHANGELOG.md", "package.json")}
    require(wanted <= names, f"the package lacks {sorted(wanted - names)}")
    run(tools / "publint", "run", tarball, "--strict", cwd=output)
    run(tools / "attw", tarball, cwd=output)
    run("npm", "publish", "--dry-run", "--ignore-scripts", tarball, cwd=output)
    lock = json.loads((folder / "package-lock.json").read_text())
    write_sbom(
        "typescript",
        sdk_sboms.bill(
            f"pkg:npm/{manifest['name']}@{version}",
            manifest["name"],
            version,
            manifest["description"],
            sdk_sboms.of_npm(manifest, lock),
        ),
    )


def check_manifest(manifest: dict[str, Any], version: str) -> None:
    """Raises Failed unless package.json has what `npm publish --provenance` and its page in the registry need."""
    require(manifest["version"] == version, f"package.json has version {manifest['version']}, not {version}")
    wanted = {"type": "git", "url": f"git+{REPOSITORY}.git", "directory": "sdks/typescript"}
    require(manifest.get("repository") == wanted, f"repository has to be {wanted}: provenance is compared with it")
    for member in ("description", "homepage", "bugs", "license", "author", "keywords", "engines", "files", "exports"):
        require(manifest.get(member), f"package.json has no {member}")
    require(not manifest.get("private"), "package.json is private")
    require("publishConfig" not in manifest, "publishConfig is left to npm's defaults and the workflow")


def check_go(folder: Path, output: Path, version: str) -> None:
    module = json.loads(run("go", "mod", "edit", "-json", cwd=folder))
    require(module["Module"]["Path"] == GO_MODULE, f"the module's path is {module['Module']['Path']}, not {GO_MODULE}")
    major = version.split(".")[0]
    require(major in {"0", "1"}, f"version {version} needs a path that ends in /v{major}")
    require(not module.get("Replace"), "go.mod has a replace, which users don't get")
    run("go", "mod", "tidy", "-diff", cwd=folder, env={"GOWORK": "off", "GOFLAGS": ""})
    tagged = f"{GO_MODULE}@v{version}"
    proxied = output / "proxy" / GO_MODULE / "@v"
    proxied.mkdir(parents=True)
    (proxied / f"v{version}.info").write_text(json.dumps({"Version": f"v{version}"}))
    shutil.copy(folder / "go.mod", proxied / f"v{version}.mod")
    with zipfile.ZipFile(proxied / f"v{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in module_files(folder):
            archive.write(path, f"{tagged}/{path.relative_to(folder)}")
    # `go vet` passes over packages of the module cache, so they are vetted here, and then built as a user gets them, when Go
    # checks the archive by its own rules.
    run("go", "vet", "./...", cwd=folder, env={"GOWORK": "off", "GOFLAGS": ""})
    user = output / "user"
    user.mkdir()
    # Go keeps an index of each module by its folder in the module cache, which it takes to be unchangeable: in a folder that
    # an earlier check has used, it would not see new files.
    modules = Path(tempfile.mkdtemp(prefix="modules-", dir=output))
    env = {
        "GOPROXY": (output / "proxy").as_uri(), "GONOSUMDB": "*", "GOPRIVATE": "", "GONOPROXY": "", "GOWORK": "off",
        "GOFLAGS": "-modcacherw", "GOMODCACHE": str(modules),
    }  # fmt: skip
    run("go", "mod", "init", "example.com/user", cwd=user, env=env)
    run("go", "get", tagged, cwd=user, env=env)
    packages = run("go", "list", f"{GO_MODULE}/...", cwd=user, env=env).split()
    public = {f"{GO_MODULE}/{name}" for name in ("tocsin", "receiver", "tocsintest")}
    require(public <= {*packages}, f"the module has the packages {packages}")
    run("go", "build", *packages, cwd=user, env=env)
    shutil.rmtree(modules)
    write_sbom(
        "go",
        sdk_sboms.bill(
            f"pkg:golang/{GO_MODULE}@v{version}",
            GO_MODULE,
            f"v{version}",
            "Client and webhook receiver for Tocsin, the durable timer service",
            sdk_sboms.of_go(module),
        ),
    )


def module_files(folder: Path) -> list[Path]:
    """The files that a proxy serves of the module: all but those of modules below it."""
    nested = [path.parent for path in folder.rglob("go.mod") if path.parent != folder]
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [path for path in files if not any(module in path.parents for module in nested)]
    require(folder / "LICENSE" in files, "the module has no LICENSE")
    return files


def check_java(folder: Path, output: Path, version: str) -> None:
    poms = output / "effective.xml"
    run("mvn", "--batch-mode", "--quiet", "-Prelease", "package", _EFFECTIVE_POM, f"-Doutput={poms}", cwd=folder)
    released = {project["artifactId"]: project for project in projects(poms.read_text())}
    wanted = {"tocsin-parent", "tocsin-client", "tocsin-servlet"}
    require(released.keys() == wanted, f"released would be {sorted(released)}, not {sorted(wanted)}")
    for name, project in released.items():
        check_pom(project, version)
        own = (folder / ("" if name == "tocsin-parent" else name) / "pom.xml").read_text()
        for element in ("repositories", "pluginRepositories", "distributionManagement"):
            require(f"<{element}>" not in own, f"{name} has {element}: where it goes is left to Maven's defaults")
        if project["packaging"] == "pom":
            continue
        for kind in ("", "-sources", "-javadoc"):
            jar = folder / name / f"target/{name}-{version}{kind}.jar"
            require(jar.exists(), f"{jar.name} was not built")
            shutil.copy(jar, output)
        with zipfile.ZipFile(output / f"{name}-{version}.jar") as archive:
            require("META-INF/LICENSE" in archive.namelist(), f"{name} has no META-INF/LICENSE")
        write_sbom(
            name.replace("tocsin", "java", 1),
            sdk_sboms.bill(
                f"pkg:maven/{project['groupId']}/{name}@{version}",
                f"{project['groupId']}:{name}",
                version,
                project["description"],
                sdk_sboms.of_maven(project.get("dependencies", [])),
            ),
        )


def projects(poms: str) -> list[dict[str, Any]]:
    """The projects of Maven's effective poms: text members as they are, the members of others as lists of such."""
    document = ElementTree.fromstring(re.sub(r' xmlns(:\w+)?="[^"]*"| xsi:\w+="[^"]*"', "", poms))
    return [_members(project) for project in document.iter("project")]


def _members(element: ElementTree.Element) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for child in element:
        of_text = len(child) == 0
        if child.tag in {"licenses", "developers", "dependencies"}:
            found[child.tag] = [_members(one) for one in child]
        else:
            found[child.tag] = (child.text or "").strip() if of_text else _members(child)
    return {"packaging": "jar", **found} if element.tag == "project" else found


def check_pom(project: dict[str, Any], version: str) -> None:
    """Raises Failed unless an effective pom has what Maven Central demands."""
    name = project["artifactId"]
    require(project["groupId"] == "dev.tocsin", f"{name} has the group {project['groupId']}")
    require(project["version"] == version, f"{name} has version {project['version']}, not {version}")
    for member in ("name", "description", "url"):
        require(project.get(member), f"{name} has no {member}")
    for member, needed in (("licenses", ("name", "url")), ("developers", ("name", "url"))):
        entries = project.get(member) or []
        require(
            entries and all(one.get(part) for one in entries for part in needed), f"{name} has no complete {member}"
        )
    for part in ("connection", "developerConnection", "url"):
        address = project.get("scm", {}).get(part, "")
        require("github.com" in address and "tocsin-dev/tocsin" in address, f"{name} has no scm {part}")
    for one in project.get("dependencies", []):
        what = f"{one['groupId']}:{one['artifactId']}:{one.get('version')}"
        exact = re.fullmatch(r"[\w.-]+", one.get("version", "")) and "SNAPSHOT" not in one["version"]
        require(exact, f"{name} depends on {what}, which is no release")


SDKS = {
    "python": Sdk(check_python, (), ("src/tocsin_client/_version.py", rf'__version__ = "({_VERSION})"')),
    "typescript": Sdk(
        check_typescript,
        ("npm", "node"),
        ("src/version.ts", rf'VERSION = "({_VERSION})"'),
        rf"tocsin-client-({_VERSION})\.tgz",
    ),
    "go": Sdk(check_go, ("go",), ("tocsin/client.go", rf'Version = "({_VERSION})"')),
    "java": Sdk(
        check_java,
        ("java", "javac", "mvn"),
        ("tocsin-client/src/main/java/dev/tocsin/client/Version.java", rf'TEXT = "({_VERSION})"'),
        rf"<artifactId>tocsin-[a-z]+</artifactId>\s*<version>({_VERSION})<",
    ),
}  # fmt: skip


def check(language: str, tag: str | None) -> str:
    """Returns the version of the language's SDK. Raises Failed with the first problem."""
    sdk, folder, output = SDKS[language], EXPORT / "sdks" / language, OUTPUT / language
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    version = version_of(folder, sdk)
    if tag is not None:
        check_tag(language, folder, version, tag)
    if sdk.mentions:
        check_mentions(folder, language, version, sdk.mentions)
    sdk.check(folder, output, version)
    return version


def has(program: str) -> bool:
    """Whether the machine has the program. Go and Node.js that are too old for the SDK count as none."""
    if shutil.which(program) is None:
        return False
    old = {
        "go": (["go", "list", "-m"], EXPORT / "sdks/go/tests"),
        "node": (["node", "-e", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)"], ROOT),
    }
    if program not in old:
        return True
    command, folder = old[program]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def outcome(language: str, tag: str | None, *, named: bool) -> tuple[str, bool]:
    """What is reported of a language, and whether it is fine. A language that was not named may lack its toolchain, unless
    `TOCSIN_TEST_REQUIRE` has one of its programs."""
    if missing := [program for program in SDKS[language].requires if not has(program)]:
        demanded = named or {*missing} & {*os.environ.get("TOCSIN_TEST_REQUIRE", "").split(",")}
        return f"{language}: NOT CHECKED: {', '.join(missing)} not found, or too old", not demanded
    try:
        return f"{language}: {check(language, tag)} can be released", True
    except Failed as problem:
        return f"{language}: FAILED: {problem}", False


def export() -> None:
    """Writes the files of the last commit that packages are made of, and nothing else, to `EXPORT`."""
    shutil.rmtree(EXPORT, ignore_errors=True)
    EXPORT.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", "HEAD", "sdks", "docs/sdks", "requirements"], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", EXPORT], input=archive.stdout, check=True)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Check that the packages of the SDKs can be released.")
    parser.add_argument("language", nargs="*", help="which of them; by default all")
    parser.add_argument("--tag", help="the tag of the release of the one language")
    arguments = parser.parse_args()
    chosen = arguments.language or list(SDKS)
    if unknown := {*chosen} - SDKS.keys():
        parser.error(f"there is no SDK {', '.join(sorted(unknown))}; SDKs are: {', '.join(SDKS)}")
    if arguments.tag is not None and len(chosen) != 1:
        parser.error("--tag takes one language")
    export()
    # Most of the time is that of one compiler after another.
    with ThreadPoolExecutor() as pool:
        outcomes = pool.map(lambda language: outcome(language, arguments.tag, named=bool(arguments.language)), chosen)
        failed = 0
        for line, succeeded in outcomes:
            print(line, file=sys.stdout if succeeded else sys.stderr, flush=True)
            failed += not succeeded
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
