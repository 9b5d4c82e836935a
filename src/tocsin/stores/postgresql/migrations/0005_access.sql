-- Sign-ins to the web pages. The cookie has a random token, of which only the SHA-256 is stored.
CREATE TABLE sign_ins (
  sign_in_token_hash text PRIMARY KEY,
  sign_in_key_id text NOT NULL,
  sign_in_seen_at bigint NOT NULL,
  sign_in_expires_at bigint NOT NULL
);

CREATE INDEX sign_ins_by_key ON sign_ins (sign_in_key_id, sign_in_seen_at);
CREATE INDEX sign_ins_by_expiry ON sign_ins (sign_in_expires_at);

-- The audit trail. The columns beside the record are for order and filters.
CREATE TABLE audit (
  audit_at bigint NOT NULL,
  audit_id bytea NOT NULL CHECK (octet_length(audit_id) = 16),
  audit_action text NOT NULL,
  audit_key_id text,
  audit_subject text NOT NULL,
  audit_record text NOT NULL,
  PRIMARY KEY (audit_at, audit_id)
);

-- The table sign_outs stays for nodes of the previous release, which read it until they are replaced.
