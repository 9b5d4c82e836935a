"""The agent's database: SQLite or PostgreSQL, by SQLAlchemy Core."""
