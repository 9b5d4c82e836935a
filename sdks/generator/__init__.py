"""What the SDKs have in common is made from the server: `sdks/generate.py` runs it."""
