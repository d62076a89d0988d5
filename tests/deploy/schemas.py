"""A program: check folders like deploy/ against the schemas of build/peers-schemas, which its path has first."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import cloudcoil.models.keda.v1alpha1 as keda
import compose_spec
import kubernetes_validate
import yaml


def check(folder: Path) -> None:
    """Raise what a validator raises."""
    for path in sorted((folder / "kubernetes").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if document["apiVersion"].startswith("keda.sh/"):
                kind: Any = getattr(keda, document["kind"])
                given = kind.model_validate(document, strict=True).model_dump(by_alias=True, exclude_unset=True)
                assert given == document, f"{path}: KEDA knows {given}"
            else:
                kubernetes_validate.validate(document, "1.31", strict=True)
    merged = yaml.safe_load((folder / "compose.yaml").read_text(encoding="utf-8"))
    compose_spec.PyCompose.from_yaml(yaml.safe_dump(merged)).to_spec()


def faults(folder: str) -> str:
    """Return what a validator says of a folder."""
    try:
        check(Path(folder))
    except Exception as error:  # noqa: BLE001 - each validator has its own
        return str(error)
    return ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(list(map(faults, sys.argv[1:]))))
