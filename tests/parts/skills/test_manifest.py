"""Manifests: what people share loads, what cannot be read has a code, and the format's own validator agrees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.skills.folder import Book, SkillPlace, write_skill
from remit.parts.skills.manifest import FINDINGS, InvalidManifestError, read_seed, read_skill_md
from remit.parts.skills.settings import SkillSettings
from remit.settings import load
from tests.parts.skills.shapes import SHAPES, WRONG, WRONG_WHEN_USED, Shape, Wrong

PAGE = (Path(__file__).parents[3] / "docs/skills.md").read_text(encoding="utf-8")


def book(*folders: Path) -> Book:
    """The skills of these folders, and those that ship."""
    settings = load(env={}, search=False)
    return Book(SkillSettings(folders=tuple(map(str, folders))), settings.folder, None, trusted=True)


def test_sixty_skills_of_all_shapes_load_and_none_is_lost(tmp_path: Path) -> None:
    assert len(SHAPES) >= 60
    for shape in SHAPES:
        shape.write(tmp_path)
    found = book(tmp_path)
    assert found.unloaded == []
    assert len([skill for skill in found.skills.values() if skill.source != "remit"]) == len(SHAPES)
    for skill in found.skills.values():
        manifest, contents = skill.place.read()
        assert manifest.name == skill.name
        assert contents.texts.get("SKILL.md", "") == manifest.body


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.folder for shape in SHAPES])
def test_skills_ref_agrees_on_what_is_valid(shape: Shape, tmp_path: Path) -> None:
    skills_ref = pytest.importorskip("skills_ref")
    place = shape.write(tmp_path)
    manifest = SkillPlace(tmp_path, place.name, is_folder=True).manifest()
    assert (skills_ref.validate(place) == []) is shape.is_valid
    assert (manifest.findings == ()) is shape.is_valid


@pytest.mark.parametrize("wrong", WRONG, ids=[wrong.name for wrong in WRONG])
def test_what_cannot_be_loaded_has_a_code_and_takes_no_other_with_it(wrong: Wrong, tmp_path: Path) -> None:
    wrong.write(tmp_path / wrong.name)
    Shape("before", "name: {name}\ndescription: A.").write(tmp_path)
    Shape("zebra", "name: {name}\ndescription: Z.").write(tmp_path)
    found = book(tmp_path)
    (left,) = found.unloaded
    assert [said.code for said in left.findings] == [wrong.code]
    assert left.findings[0].message
    assert {"before", "zebra"} <= found.skills.keys()


def test_there_are_forty_of_them() -> None:
    assert len(WRONG) + len(WRONG_WHEN_USED) >= 40
    assert {wrong.code for wrong in (*WRONG, *WRONG_WHEN_USED)} <= FINDINGS.keys()


@pytest.mark.parametrize("wrong", WRONG_WHEN_USED, ids=[wrong.name for wrong in WRONG_WHEN_USED])
def test_what_is_too_much_is_found_out_when_all_of_it_is_read(wrong: Wrong, tmp_path: Path) -> None:
    wrong.write(tmp_path / wrong.name)
    with pytest.raises(InvalidManifestError) as caught:
        SkillPlace(tmp_path, wrong.name, is_folder=True).read()
    assert caught.value.finding.code == wrong.code


def test_every_code_of_a_finding_is_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|$", PAGE.partition("## Findings")[2], re.MULTILINE))
    assert rows == FINDINGS


def test_the_seeds_form_and_the_open_one_are_one_model() -> None:
    seed = read_seed(
        b'{"skill_name": "x", "required_tools": ["fs.read", "web.*"], "allowed_run_types": ["agent"], '
        b'"risk_policy": "ask", "sandbox": {"network": [], "limits": {"wall_ms": 9}}, "template": "Do it."}',
        "x.json",
    )
    yaml = read_seed(
        b"skill_name: x\nrequired_tools: [fs.read, 'web.*']\nallowed_run_types: [agent]\nrisk_policy: ask\n"
        b"sandbox: {network: [], limits: {wall_ms: 9}}\ntemplate: Do it.\n",
        "x.yaml",
    )
    head = "remit-required-tools: fs.read web.*\n  remit-run-types: agent\n  remit-risk: ask\n"
    head += """  remit-sandbox: '{"network": [], "limits": {"wall_ms": 9}}'"""
    md = read_skill_md(f"---\nname: x\ndescription: d\nmetadata:\n  {head}\n---\nDo it.\n".encode(), "x")
    assert seed == yaml
    for field in ("name", "required_tools", "run_types", "risk", "sandbox", "body"):
        assert getattr(seed, field) == getattr(md, field), field


def test_rules_of_an_author_may_deny_and_ask() -> None:
    text = '{"skill_name": "x", "risk_policy": [{"effect": "deny", "tools": "a.*", "when": {"to": {"glob": "*@x"}}}]}'
    assert read_seed(text.encode(), "x.json").rules[0]["effect"] == "deny"


def test_a_new_skill_is_valid_for_both(tmp_path: Path) -> None:
    file = write_skill("release-notes", tmp_path)
    skills_ref = pytest.importorskip("skills_ref")
    assert skills_ref.validate(file.parent) == []
    (finding,) = SkillPlace(tmp_path, "release-notes", is_folder=True).manifest().findings
    assert (finding.code, finding.fatal) == ("template", False)  # it says nothing yet


@given(
    st.binary(max_size=400) | st.text(max_size=400).map(lambda text: f"---\n{text}\n---\n".encode("utf-8", "replace"))
)
def test_any_bytes_are_a_manifest_or_have_a_code(data: bytes) -> None:
    for name in ("x", "x.json", "x.yaml"):
        try:
            findings = (read_skill_md(data, name) if name == "x" else read_seed(data, name)).findings
        except InvalidManifestError as error:
            findings = (error.finding,)
        assert {said.code for said in findings} <= FINDINGS.keys()
