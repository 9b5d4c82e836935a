"""What the wheel and the sdist have beside the source: the built pages, the commit, and a software bill of materials.

Hatchling runs it for `make wheel` and every other build. An editable install, such as that of `make setup`, needs none of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
import uuid
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGES = "src/tocsin/web/pages/static/manifest.json"
BUILD = "build.json"
SBOM = "tocsin.cdx.json"
#: Names the commit where there is no Git repository, such as in the build of an image.
COMMIT_VARIABLE = "TOCSIN_BUILD_COMMIT"
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)(?:\s*;\s*([^\\]+?))?\s*\\?$")


class TocsinBuildHook(BuildHookInterface):
    """Adds the files to a build, and refuses one without pages."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the build. Raises RuntimeError without the built pages."""
        if version == "editable":
            return
        root = Path(self.root)
        if not (root / PAGES).is_file():
            raise RuntimeError(f"{PAGES} is missing: build the web pages with `make web`, then build again")
        self._made = Path(tempfile.mkdtemp(prefix="tocsin-build-"))
        if not (root / "src/tocsin" / BUILD).is_file():
            (self._made / BUILD).write_text(json.dumps({"commit": commit_of(root)}) + "\n", encoding="utf-8")
            place = f"src/tocsin/{BUILD}" if self.target_name == "sdist" else f"tocsin/{BUILD}"
            build_data["force_include"][str(self._made / BUILD)] = place
        if self.target_name == "wheel":
            (self._made / SBOM).write_text(json.dumps(bill_of_materials(root), indent=1) + "\n", encoding="utf-8")
            build_data["sbom_files"].append(str(self._made / SBOM))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called after the build."""
        if version != "editable":
            shutil.rmtree(self._made)


def commit_of(root: Path) -> str:
    """The commit that is built, `-dirty` behind it if tracked files differ from it; `unknown` without Git."""
    if named := os.environ.get(COMMIT_VARIABLE, "").strip():
        return named
    if not (root / ".git").exists():
        return "unknown"
    try:
        commit = _git(root, "rev-parse", "HEAD")
        return f"{commit}-dirty" if _git(root, "status", "--porcelain", "--untracked-files=no") else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def bill_of_materials(root: Path) -> dict[str, Any]:
    """A CycloneDX document with the locked dependencies: those of the server with all extras, and those that the scripts of
    the pages contain. The same lock makes the same document."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    components = [*_python(root / "requirements/main.txt"), *_scripts(root / "web/package-lock.json")]
    subject = f"pkg:pypi/{project['name']}@{project['version']}"
    content = json.dumps([subject, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": subject,
                "name": project["name"],
                "version": project["version"],
                "description": project["description"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": subject,
            },
        },
        "components": components,
        "dependencies": [{"ref": subject, "dependsOn": [component["bom-ref"] for component in components]}],
    }


def _python(lock: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in lock.read_text(encoding="utf-8").splitlines():
        if pinned := _PINNED.match(line):
            name, version, marker = pinned[1].lower(), pinned[2], pinned[3]
            component = _component(f"pkg:pypi/{name}@{version}", name, version)
            if marker:
                component["properties"] = [{"name": "tocsin:marker", "value": marker}]
            found.append(component)
    if not found:
        raise RuntimeError(f"{lock} names no locked dependency")
    return found


def _scripts(lock: Path) -> list[dict[str, Any]]:
    packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    found = []
    for path, package in sorted(packages.items()):
        if path and not (package.get("dev") or package.get("optional")):
            name, version = path.rpartition("node_modules/")[2], package["version"]
            component = _component(f"pkg:npm/{name.replace('@', '%40')}@{version}", name, version)
            if "license" in package:
                component["licenses"] = [{"expression": package["license"]}]
            found.append(component)
    return found


def _component(purl: str, name: str, version: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
