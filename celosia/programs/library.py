"""The default programs by name."""

from celosia.programs import conv, digits, gemm

PROGRAMS = {
    "gemm": gemm.build,
    "odd_gemm": gemm.build_odd,
    "digits": digits.build,
    "conv": conv.build,
}
"""{name: build(config, seed) -> Case}, in the order in which `make sim` runs them."""
