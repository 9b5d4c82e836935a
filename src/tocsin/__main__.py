"""The command `tocsin`, also as `python -m tocsin`."""

from __future__ import annotations

import sys


def main() -> None:
    """The console script."""
    if sys.argv[1:] == ["--version"]:
        # The commands are not imported for it: that takes longer than all the rest.
        from tocsin.build_info import versions_text

        print(versions_text())
        return
    from tocsin.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
