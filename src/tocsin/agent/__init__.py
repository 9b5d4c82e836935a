"""The service agent: service calls of many tenants, now or later. Modules that talk only by messages."""
