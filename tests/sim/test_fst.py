"""The stand-ins for zlib and LZ4 of the FST writer produce streams that every decoder reads."""

import subprocess
import zlib

import numpy as np
import pytest

from sim.build import ROOT

MAIN = """
#include <cstdio>
#include <vector>
#include "lz4.h"
#include "zlib.h"
int main(int argc, char** argv) {
    std::vector<unsigned char> in;
    for (int c; (c = std::getchar()) != EOF;) in.push_back(c);
    if (argv[1][0] == 'z') {
        uLongf size = compressBound(in.size());
        std::vector<unsigned char> out(size);
        if (compress2(out.data(), &size, in.data(), in.size(), 4) != Z_OK) return 1;
        std::fwrite(out.data(), 1, size, stdout);
    } else {
        const int bound = LZ4_compressBound(in.size());
        std::vector<char> out(bound);
        const char* source = reinterpret_cast<const char*>(in.data());
        const int size = LZ4_compress_default(source, out.data(), in.size(), bound);
        std::fwrite(out.data(), 1, size, stdout);
    }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fst")
    (folder / "main.cpp").write_text(MAIN)
    command = [
        "g++",
        "-O1",
        f"-I{ROOT / 'sim' / 'fst'}",
        str(folder / "main.cpp"),
        "-o",
        str(folder / "main"),
    ]
    subprocess.run(command, check=True)
    return folder / "main"


def data(size):
    return np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8).tobytes()


def lz4_block(block):
    """Decode an LZ4 block without matches, from the format's description."""
    length, place = block[0] >> 4, 1
    assert block[0] & 15 == 0
    if length == 15:
        while True:
            length += block[place]
            place += 1
            if block[place - 1] != 255:
                break
    assert place + length == len(block)
    return block[place:]


@pytest.mark.parametrize("size", [0, 1, 14, 15, 16, 269, 270, 271, 65534, 65535, 65536, 200_000])
def test_round_trip(program, size):
    content = data(size)
    packed = {
        kind: subprocess.run([program, kind], input=content, capture_output=True, check=True).stdout
        for kind in "zl"
    }
    assert zlib.decompress(packed["z"]) == content
    assert lz4_block(packed["l"]) == content
