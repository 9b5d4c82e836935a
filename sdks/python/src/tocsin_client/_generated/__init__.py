"""Made by sdks/generate.py."""
