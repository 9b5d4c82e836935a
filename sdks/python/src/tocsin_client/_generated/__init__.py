"""Made by sdks/generate.py from docs/reference/openapi.json."""
