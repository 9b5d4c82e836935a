"""The HTTP parts that the API and the pages share: structs and their conversion, request bodies, API keys, errors."""
