"""Makes the generated parts of the SDKs: code from the OpenAPI document, test vectors from the server's own model.

    python -m sdks.generate           writes the files
    python -m sdks.generate --check   exits with 1 if a file is not what would be written

A language joins with a module like `generator/python.py` and a folder of templates.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sdks.generator import document, go, java, python, typescript, vectors

SDKS = Path(__file__).resolve().parent
LANGUAGES = (python, typescript, go, java)


def made() -> dict[Path, str]:
    """All generated files and their contents."""
    api = document.read(SDKS.parent / "docs/reference/openapi.json")
    contents = vectors.files(api)
    for language in LANGUAGES:
        contents |= language.files(api, SDKS / "generator/templates")
    return {SDKS / path: text for path, text in contents.items()}


def outdated() -> list[Path]:
    """The files that differ from what would be written, below the repository's root."""
    return [
        path.relative_to(SDKS.parent) for path, text in made().items() if not path.exists() or path.read_text() != text
    ]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Make the generated parts of the SDKs.")
    parser.add_argument("--check", action="store_true", help="only report files that are out of date")
    if parser.parse_args().check:
        for path in (late := outdated()):
            print(f"{path} is out of date: run `make docs`", file=sys.stderr)
        return 1 if late else 0
    for path, text in made().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
