"""The `tocsin` command: one module per command. Functions import their dependencies, so that `--help` is quick."""
