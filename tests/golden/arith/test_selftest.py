"""The golden model refuses to run where float32 subnormals are flushed."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from golden.arith.selftest import require_subnormals, subnormals_survive

ROOT = Path(__file__).resolve().parents[3]

FLUSHING = """
#include <immintrin.h>
extern "C" void flush_subnormals(unsigned bits) { _mm_setcsr(_mm_getcsr() | bits); }
"""
IMPORT = """
import ctypes, sys
import numpy
ctypes.CDLL(sys.argv[1]).flush_subnormals(int(sys.argv[2], 16))
import golden.arith
"""
START = """
import ctypes, sys
from golden.chip import GoldenChip
from isa.builder import ProgramBuilder
from isa.geometry import preset
builder = ProgramBuilder(preset("tiny"))
builder.sync.nop()
chip = GoldenChip(preset("tiny"))
program = builder.build()
chip.run(program)
ctypes.CDLL(sys.argv[1]).flush_subnormals(int(sys.argv[2], 16))
print("flushed from here")
chip.run(program)
"""
FLUSH_RESULTS, FLUSH_OPERANDS, NEITHER = "8000", "40", "0"


def test_this_process_keeps_subnormals():
    assert subnormals_survive()
    require_subnormals()


@pytest.fixture(scope="module")
def flushing_library(tmp_path_factory):
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("sets the control register of x86")
    folder = tmp_path_factory.mktemp("flushing")
    (folder / "flush.cc").write_text(FLUSHING)
    library = folder / "flush.so"
    command = ["g++", "-shared", "-fPIC", str(folder / "flush.cc"), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize("text", [IMPORT, START], ids=["import", "start"])
@pytest.mark.parametrize("bits", [FLUSH_RESULTS, FLUSH_OPERANDS, NEITHER])
def test_refused_exactly_where_subnormals_are_flushed(flushing_library, text, bits):
    """At import, and at the start of a program where the library came after the import."""
    done = subprocess.run(
        [sys.executable, "-c", text, str(flushing_library), bits],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.stdout == ("flushed from here\n" if text == START else "")
    if bits == NEITHER:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0
        assert "RuntimeError: float32 subnormals are flushed" in done.stderr
