"""Verilog out: every preset, deterministic, clean under lint; manifest, budgets, RAM mapping."""

import hashlib
import json
import re

import pytest

from hdl.verilog import main, write
from isa.geometry import PRESETS, preset
from sim.build import ROOT
from sim.lint import lint

METRICS = json.loads((ROOT / "docs" / "metrics.json").read_text())


@pytest.fixture(scope="module", params=PRESETS)
def emitted(request, tmp_path_factory):
    """(config, folder, manifest) of every preset."""
    folder = tmp_path_factory.mktemp(request.param)
    return preset(request.param), folder, write(preset(request.param), folder)


def test_manifest_describes_the_files(emitted):
    config, folder, manifest = emitted
    assert json.loads((folder / "manifest.json").read_text()) == manifest
    text = (folder / "celosia.sv").read_bytes()
    assert manifest["files"]["celosia.sv"] == {
        "sha256": hashlib.sha256(text).hexdigest(),
        "bytes": len(text),
    }
    assert (folder / "files.f").read_text().split() == ["celosia.sv"]
    assert manifest["config_hash"] == f"{config.arch_hash:016x}"
    assert manifest["parameters"]["array"] == config.array


def test_ports_of_the_manifest_are_those_of_the_module(emitted):
    _, folder, manifest = emitted
    text = (folder / "celosia.sv").read_text()
    header = re.search(r"\nmodule celosia\(([^)]*)\)", text).group(1)
    assert {name.strip() for name in header.split(",")} == {
        port["name"] for port in manifest["ports"]
    }
    assert {"clk", "rst", "m_axi_hbm0_araddr", "s_axi_host_awvalid", "irq"} <= {
        port["name"] for port in manifest["ports"]
    }


def test_no_empty_vectors_and_clocks_are_ports(emitted):
    _, folder, _ = emitted
    text = (folder / "celosia.sv").read_text()
    assert "[-1:0]" not in text
    assert "posedge 1'h0" not in text


def test_logic_is_continuous_assignments(emitted):
    """Decision 7: no blocks but registers, and no functions."""
    _, folder, _ = emitted
    text = (folder / "celosia.sv").read_text()
    blocks = re.findall(r"\b(?:always(?:_ff|_comb|_latch)?|function|task|casez?)\b", text)
    assert set(blocks) == {"always_ff"}


def test_size_is_within_the_budget(emitted):
    config, _, manifest = emitted
    allowed = METRICS["verilog_bytes"][config.name]
    assert 0.8 * allowed <= manifest["files"]["celosia.sv"]["bytes"] <= 1.1 * allowed, (
        "edit docs/metrics.json in the same commit"
    )


def test_same_source_same_bytes(tmp_path):
    first, second = (write(preset("tiny"), tmp_path / name)["files"] for name in "ab")
    assert first == second


@pytest.mark.parametrize("name", ["tiny", "small"])
def test_lint_is_clean(name, tmp_path):
    write(preset(name), tmp_path)
    assert lint((tmp_path / "celosia.sv").read_text(), tmp_path) == []


def test_unknown_configuration_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--config", "huge"])
    assert "tiny, small, medium, trn1, trn2" in capsys.readouterr().err
