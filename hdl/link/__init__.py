"""NeuronLink: the reliable link between chips.  docs/link.md is the specification."""
