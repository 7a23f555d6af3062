"""The reference page is the one that the declarations give."""

from isa import docs
from isa.address_map import Cause
from isa.instructions import INSTRUCTIONS


def test_the_page_is_current():
    assert docs.PAGE.read_text() == docs.reference(), "run python -m isa.docs"
    assert docs.main(["--check"]) == 0


def test_an_old_page_is_noticed(tmp_path, monkeypatch):
    page = tmp_path / "isa.md"
    monkeypatch.setattr(docs, "PAGE", page)
    assert docs.main(["--check"]) == 1
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
    page.write_text(page.read_text().replace("opcode", "opcodes", 1))
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
