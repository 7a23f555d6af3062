"""Shared by all tests: Icarus where it is installed; CELOSIA_REQUIRE_ICARUS makes it required."""

import os
import shutil

import pytest

os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")


def pytest_collection_modifyitems(items):
    if shutil.which("iverilog"):
        return
    for item in items:
        if item.get_closest_marker("icarus"):
            if os.environ.get("CELOSIA_REQUIRE_ICARUS"):
                item.add_marker(pytest.mark.usefixtures("icarus_is_missing"))
            else:
                item.add_marker(
                    pytest.mark.skip(
                        reason="Icarus Verilog is not installed (apt-get install iverilog)"
                    )
                )


@pytest.fixture
def icarus_is_missing():
    pytest.fail("CELOSIA_REQUIRE_ICARUS is set and Icarus Verilog is not installed")
