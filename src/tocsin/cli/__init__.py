"""The `tocsin` command: one file a command. Modules import what they need inside, so that `--help` is quick."""
