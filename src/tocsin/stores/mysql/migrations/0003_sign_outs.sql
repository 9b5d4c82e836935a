-- Sign-ins to the web pages that were ended early, until they would have expired. A few rows, all read at once.
CREATE TABLE IF NOT EXISTS sign_outs (
  sign_in_name varchar(255) PRIMARY KEY,
  sign_in_expires_at bigint NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
