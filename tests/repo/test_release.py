"""What a release of an SDK rests on: `make release-check` finds what it is for, workflows name what exists."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .test_tidy import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import release_check
import release_commit
import sdk_sboms
from release_check import Failed

from tests.support.cases import each
from tocsin import __version__

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


@each("language", release_check.SDKS)
def test_versions_agree(language: str) -> None:
    sdk, folder = release_check.SDKS[language], ROOT / "sdks" / language
    version = release_check.version_of(folder, sdk)
    minor = ".".join(version.split(".")[:2])
    row = rf"^\| {language} {re.escape(minor)} \|"
    assert re.search(row, (ROOT / "docs/sdks/servers.md").read_text(), re.MULTILINE | re.IGNORECASE)


def test_pages_name_this_release_of_the_server() -> None:
    """What they have typed takes the wheel and the image of the checkout."""
    for page in ("README.md", "docs/how-to/deploy.md"):
        named = re.findall(r'(?:\btocsin[:-]|\btag: ")(\d+\.\d+\.\d+)', (ROOT / page).read_text())
        assert named and set(named) == {__version__}, page


def changelog(folder: Path, text: str) -> release_check.Sdk:
    (folder / "CHANGELOG.md").write_text(text)
    (folder / "version").write_text('V = "1.2.0"')
    return release_check.SDKS["go"]._replace(constant=("version", r'"([\d.]+)"'))


def test_a_changelog_may_begin_with_what_is_not_released(tmp_path: Path) -> None:
    sdk = changelog(tmp_path, "# Changelog\n\n## Unreleased\n\n## 1.2.0\n\n## 1.1.0\n")
    assert release_check.version_of(tmp_path, sdk) == "1.2.0"
    with pytest.raises(Failed, match="Unreleased"):
        release_check.check_tag("go", tmp_path, "1.2.0", "sdks/go/v1.2.0")
    changelog(tmp_path, "## 1.2.0 (2027-01-01)\n")
    release_check.check_tag("go", tmp_path, "1.2.0", "sdks/go/v1.2.0")
    with pytest.raises(Failed, match=r"the version's is sdks/go/v1\.2\.0"):
        release_check.check_tag("go", tmp_path, "1.2.0", "sdks/go/v1.2.1")
    with pytest.raises(Failed, match=r"CHANGELOG\.md 1\.1\.0"):
        release_check.version_of(tmp_path, changelog(tmp_path, "## 1.1.0\n\n## 1.2.0\n"))


def test_package_json_is_complete() -> None:
    manifest: dict[str, Any] = json.loads((ROOT / "sdks/typescript/package.json").read_text())
    version = manifest["version"]
    release_check.check_manifest(manifest, version)
    for change, problem in (
        ({"repository": {}}, "repository"),
        ({"bugs": None}, "no bugs"),
        ({"private": True}, "private"),
        ({"publishConfig": {"access": "public"}}, "publishConfig"),
        ({"version": "9.9.9"}, "version"),
    ):
        with pytest.raises(Failed, match=problem):
            release_check.check_manifest({**manifest, **change}, version)


POM = """<project>
  <groupId>dev.tocsin</groupId><artifactId>tocsin-client</artifactId><version>1.0.0</version>
  <name>n</name><description>d</description><url>https://tocsin.dev</url>
  <licenses><license><name>Apache-2.0</name><url>u</url></license></licenses>
  <developers><developer><name>n</name><url>u</url></developer></developers>
  <scm>
    <connection>scm:git:https://github.com/tocsin-dev/tocsin.git</connection>
    <developerConnection>scm:git:git@github.com:tocsin-dev/tocsin.git</developerConnection>
    <url>https://github.com/tocsin-dev/tocsin</url>
  </scm>
  <dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId><version>1.0</version></dependency></dependencies>
</project>"""


def test_a_pom_has_what_maven_central_demands() -> None:
    (complete,) = release_check.projects(POM)
    release_check.check_pom(complete, "1.0.0")
    for element, replacement, problem in (
        (r"<name>n</name><desc", "<desc", "no name"),
        (r"<description>.*?</description>", "", "no description"),
        (r"<licenses>.*</licenses>", "", "licenses"),
        (r"<developers>.*</developers>", "", "developers"),
        (r"<developerConnection>.*</developerConnection>", "", "developerConnection"),
        (r"<scm>.*</scm>", "", "scm"),
        (r"<version>1\.0</version>", "<version>1.0-SNAPSHOT</version>", "1.0-SNAPSHOT"),
        (r"<version>1\.0</version>", "<version>[1,2)</version>", "no release"),
        (r"dev\.tocsin<", "dev.other<", "group"),
    ):
        broken = re.sub(element, replacement, POM, flags=re.DOTALL)
        with pytest.raises(Failed, match=re.escape(problem)):
            release_check.check_pom(release_check.projects(broken)[0], "1.0.0")


def test_a_bill_of_materials_names_the_locked_dependencies() -> None:
    lock = "aiohttp==3.14.5 \\\n    --hash=sha256:0\nurllib3==2.8.0 \\\n"
    components = sdk_sboms.of_python(["urllib3<3,>=2.5", "aiohttp<4,>=3.14; extra == 'async'"], lock)
    bill = json.loads(sdk_sboms.bill("pkg:pypi/p@1", "p", "1", "d", components))
    found = [(one["purl"], one["scope"]) for one in bill["components"]]
    assert found == [("pkg:pypi/urllib3@2.8.0", "required"), ("pkg:pypi/aiohttp@3.14.5", "optional")]
    assert bill["dependencies"] == [{"ref": "pkg:pypi/p@1", "dependsOn": [purl for purl, _ in found]}]
    with pytest.raises(KeyError):
        sdk_sboms.of_python(["other"], lock)
    assert sdk_sboms.of_npm(
        {"peerDependencies": {"@a/b": "^1"}}, {"packages": {"node_modules/@a/b": {"version": "1.2.0"}}}
    ) == [sdk_sboms.Component("pkg:npm/%40a/b@1.2.0", "@a/b", "1.2.0", "^1")]
    assert sdk_sboms.of_maven([{"groupId": "g", "artifactId": "a", "version": "1", "scope": "test"}]) == []


def test_the_module_of_go_leaves_out_the_module_of_its_tests() -> None:
    files = release_check.module_files(ROOT / "sdks/go")
    assert ROOT / "sdks/go/go.mod" in files
    assert [path for path in files if "tests" in path.parts[len(ROOT.parts) :]] == []


@each("path", WORKFLOWS)
def test_workflows_pin_actions_by_commit(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    pinned = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v[\d.]+")
    ours = {f"./.github/workflows/{workflow.name}" for workflow in WORKFLOWS}
    assert [one for one in used if not pinned.fullmatch(one) and one not in ours] == []


def test_each_sdk_has_a_workflow_for_its_tag() -> None:
    for language in release_check.SDKS:
        text = (ROOT / f".github/workflows/release-{language}.yml").read_text()
        assert f'tags: ["sdks/{language}/v[0-9]+.[0-9]+.[0-9]+"]' in text
        assert f'make release-check ARGS="{language} --tag $GITHUB_REF_NAME"' in text


def test_each_release_waits_for_its_commit_and_the_scenarios() -> None:
    for language in release_check.SDKS:
        jobs = jobs_of(f"release-{language}.yml")
        assert jobs["commit"]["uses"] == "./.github/workflows/release-commit.yml"
        assert {*jobs["publish"]["needs"]} == {"commit", "check"}
    jobs = jobs_of("release-commit.yml")
    assert "release_commit.py" in jobs["commit"]["steps"][1]["run"]
    assert jobs["commit"]["steps"][0]["with"]["fetch-depth"] == 0, "the history of main is compared"
    assert jobs["scenarios"]["uses"] == "./.github/workflows/servers.yml"


def jobs_of(workflow: str) -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows" / workflow).read_text())["jobs"]
    return jobs


def test_a_release_is_a_commit_of_main_that_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*command: str) -> str:
        return release_check.run("git", "-c", "user.name=a", "-c", "user.email=a@b", *command, cwd=tmp_path).strip()

    git("init", "--quiet", "--initial-branch", "main")
    for name in ("old", "merged", "aside"):
        git("commit", "--quiet", "--allow-empty", "--message", name)
    git("update-ref", "refs/remotes/origin/main", "HEAD~1")
    program = tmp_path / "bin/gh"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncase "$2" in *"repos/o/r/"*"head_sha=$PASSED"*) echo 1;; *) echo 0;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("PASSED", git("rev-parse", "HEAD~1"))
    found = [release_commit.problem("o/r", git("rev-parse", each), tmp_path) for each in ("HEAD~1", "HEAD~2", "HEAD")]
    assert found[0] is None
    assert "CI has not passed" in str(found[1])
    assert "is not on main" in str(found[2])


def test_the_table_of_servers_is_what_the_workflow_runs() -> None:
    workflow = (ROOT / ".github/workflows/servers.yml").read_text()
    servers = json.loads(re.search(r"server: (\[.*\])", workflow)[1])  # type: ignore[index]
    table = (ROOT / "docs/sdks/servers.md").read_text()
    assert re.findall(r"server ([\d.]+) \|", table) == servers
