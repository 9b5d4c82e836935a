-- Sign-ins to the web pages. The cookie has a random token, of which only the SHA-256 is stored.
CREATE TABLE IF NOT EXISTS sign_ins (
  sign_in_token_hash varchar(64) PRIMARY KEY,
  sign_in_key_id varchar(255) NOT NULL,
  sign_in_seen_at bigint NOT NULL,
  sign_in_expires_at bigint NOT NULL,
  KEY sign_ins_by_key (sign_in_key_id, sign_in_seen_at),
  KEY sign_ins_by_expiry (sign_in_expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The audit trail. The columns beside the record are for order and filters.
CREATE TABLE IF NOT EXISTS audit (
  audit_at bigint NOT NULL,
  audit_id binary(16) NOT NULL,
  audit_action varchar(64) NOT NULL,
  audit_key_id varchar(255),
  audit_subject varchar(255) NOT NULL,
  audit_record longtext NOT NULL,
  PRIMARY KEY (audit_at, audit_id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The table sign_outs stays for nodes of the previous release, which read it until they are replaced.
