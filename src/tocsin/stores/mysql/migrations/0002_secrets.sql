-- Secrets that all nodes of this store share, such as the one with which they authenticate one another.
CREATE TABLE IF NOT EXISTS secrets (
  secret_name varchar(255) PRIMARY KEY,
  secret_value text NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
