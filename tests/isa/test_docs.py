"""The reference pages are those that the declarations give."""

import pytest

from isa import docs, link
from isa.address_map import Cause
from isa.instructions import INSTRUCTIONS


def test_the_page_is_current():
    assert docs.PAGE.read_text() == docs.reference(), "run python -m isa.docs"
    assert docs.LINK_PAGE.read_text() == docs.link_reference(), "run python -m isa.docs"
    assert docs.main(["--check"]) == 0


@pytest.mark.parametrize(("name", "word"), [("PAGE", "opcode"), ("LINK_PAGE", "acknowledge")])
def test_an_old_page_is_noticed(tmp_path, monkeypatch, name, word):
    page = tmp_path / "page.md"
    monkeypatch.setattr(docs, "PAGE", tmp_path / "isa.md")
    monkeypatch.setattr(docs, "LINK_PAGE", tmp_path / "link.md")
    monkeypatch.setattr(docs, name, page)
    assert docs.main(["--check"]) == 1
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
    page.write_text(page.read_text().replace(word, word + "s", 1))
    assert docs.main(["--check"]) == 1


def test_everything_is_on_the_page():
    text = docs.reference()
    for instruction in INSTRUCTIONS:
        assert f"### {instruction.name}\n" in text
        assert instruction.doc.replace("|", "\\|") in text
        for field in instruction.fields:
            assert f"`{field.name.split('.')[-1]}`" in text
    for cause in Cause:
        assert f"{cause.value} {cause.name}" in text


def test_everything_of_the_link_is_on_its_page():
    text = docs.link_reference()
    for register in link.LINK_REGISTERS:
        assert f"| `{register.name}` | {register.offset:#05x} | {register.access} |" in text
        assert register.doc.replace("|", "\\|") in text
    for field in (*link.SLOT, *link.FRAME, *link.HEADER):
        assert field.doc in text
    for name in link.COUNTERS:
        assert f"| `{name}` | {link.counter_offset(name):#05x} |" in text
    for enum in (link.LinkState, link.Reason, link.FlitType, link.PacketKind):
        for member in enum:
            assert f"{member.value} {member.name}" in text
