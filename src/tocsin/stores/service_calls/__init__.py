"""The agent's database in SQLite or PostgreSQL."""
