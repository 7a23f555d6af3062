"""The default programs by name."""

from celosia.programs import conv, digits, gemm, link_pingpong, mlp_gelu

PROGRAMS = {
    "gemm": gemm.build,
    "odd_gemm": gemm.build_odd,
    "digits": digits.build,
    "conv": conv.build,
    "gemm_fp8": gemm.build_fp8,
    "gemm_fp32": gemm.build_fp32,
    "gemm_mixed": gemm.build_mixed,
    "mlp_gelu": mlp_gelu.build,
}
"""{name: build(config, seed) -> Case}, in the order in which `make sim` runs them."""

PAIR_PROGRAMS = {"link_pingpong": link_pingpong.build}
"""{name: build(config, seed) -> PairCase} for two chips joined by a link."""
