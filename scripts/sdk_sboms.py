"""Bills of materials of the SDKs' packages, in CycloneDX: the package, and what it needs of others.

The SDKs have few dependencies or none, and name them as ranges. A component has the version with which the tests of this
commit run, and the range as a property.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any, NamedTuple


class Component(NamedTuple):
    """Something that a package needs. `scope` is `required` or `optional`, `range` what the package accepts."""

    purl: str
    name: str
    version: str
    range: str
    scope: str = "required"


def bill(purl: str, name: str, version: str, description: str, components: list[Component]) -> str:
    """The document of a package, as JSON. The same package makes the same document."""
    content = json.dumps([purl, description, components])
    document: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "description": description,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": purl,
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": component.purl,
                "name": component.name,
                "version": component.version,
                "scope": component.scope,
                "purl": component.purl,
                "properties": [{"name": "tocsin:accepted", "value": component.range}],
            }
            for component in components
        ],
        "dependencies": [{"ref": purl, "dependsOn": [component.purl for component in components]}],
    }
    return json.dumps(document, indent=1) + "\n"


def of_python(requires: list[str], lock: str) -> list[Component]:
    """From `Requires-Dist` of a wheel, and the lock file of the tests. Raises KeyError if the lock lacks one."""
    locked = dict(re.findall(r"^([a-z0-9._-]+)==([^\s;\\]+)", lock, re.MULTILINE))
    found = []
    for required in requires:
        requirement, _, marker = (part.strip() for part in required.partition(";"))
        name, accepted = re.fullmatch(r"([\w.-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
        version = locked[name.lower()]
        scope = "optional" if "extra" in marker else "required"
        found.append(Component(f"pkg:pypi/{name.lower()}@{version}", name, version, accepted.strip(), scope))
    return found


def of_npm(manifest: dict[str, Any], lock: dict[str, Any]) -> list[Component]:
    """From package.json and package-lock.json. Raises KeyError if the lock lacks one."""
    optional = {name for name, meta in manifest.get("peerDependenciesMeta", {}).items() if meta.get("optional")}
    wanted = {**manifest.get("dependencies", {}), **manifest.get("peerDependencies", {})}
    found = []
    for name, accepted in wanted.items():
        version = lock["packages"][f"node_modules/{name}"]["version"]
        scope = "optional" if name in optional else "required"
        found.append(Component(f"pkg:npm/{name.replace('@', '%40')}@{version}", name, version, accepted, scope))
    return found


def of_go(module: dict[str, Any]) -> list[Component]:
    """From the answer of `go mod edit -json`."""
    return [
        Component(f"pkg:golang/{one['Path']}@{one['Version']}", one["Path"], one["Version"], f">={one['Version']}")
        for one in module.get("Require") or ()
    ]


def of_maven(dependencies: list[dict[str, str]]) -> list[Component]:
    """From the dependencies of an effective pom, those for tests left out."""
    return [
        Component(
            f"pkg:maven/{one['groupId']}/{one['artifactId']}@{one['version']}",
            f"{one['groupId']}:{one['artifactId']}",
            one["version"],
            one["version"],
            "optional" if one.get("optional") == "true" else "required",
        )
        for one in dependencies
        if one.get("scope", "compile") not in {"test", "system"}
    ]
