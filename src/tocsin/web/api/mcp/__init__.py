"""What clients do over the Model Context Protocol (MCP): tools, which make requests to the API with their caller's key.

Only `transport` imports the SDK of the protocol, which is an extra.
"""
