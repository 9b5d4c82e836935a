-- What all who may open this store know together, such as the secret by which nodes know one another.
CREATE TABLE secrets (
  secret_name TEXT PRIMARY KEY,
  secret_value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
