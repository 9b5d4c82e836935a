"""The service agent: HTTP calls on behalf of many tenants, now or later. Its modules communicate by messages only."""
