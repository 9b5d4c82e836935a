-- Secrets that all nodes of this store share, such as the one with which they authenticate one another.
CREATE TABLE secrets (
  secret_name text PRIMARY KEY,
  secret_value text NOT NULL
);
