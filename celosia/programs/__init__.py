"""Programs that `make sim` runs by default: each module has `build(config, seed) -> Case`."""
