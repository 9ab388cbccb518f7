"""Writes which packages are installed beside this interpreter, as a CycloneDX document: python -P
sbom.py."""

import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from typing import Any
from urllib.parse import quote


def document(installed: Iterable[Distribution]) -> dict[str, Any]:
    """The document of some packages. It says the same of the same packages, so that a build can be
    repeated."""
    components = {component["purl"]: component for component in map(_component, installed)}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": [components[purl] for purl in sorted(components)],
    }


def _component(package: Distribution) -> dict[str, Any]:
    name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
    purl = f"pkg:pypi/{quote(name)}@{quote(package.version)}"
    component: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": package.version, "purl": purl}
    if expression := package.metadata["License-Expression"]:
        component["licenses"] = [{"expression": expression}]
    return component


if __name__ == "__main__":
    json.dump(document(distributions()), sys.stdout, indent=1)
