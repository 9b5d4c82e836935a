-- What all who may open this store know together, such as the secret by which nodes know one another.
CREATE TABLE secrets (
  secret_name text PRIMARY KEY,
  secret_value text NOT NULL
);
