-- Secrets that all nodes of this store share, such as the one with which they authenticate one another.
CREATE TABLE secrets (
  secret_name TEXT PRIMARY KEY,
  secret_value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
