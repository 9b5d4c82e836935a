-- Sign-ins to the web pages. The cookie has a random token, of which only the SHA-256 is stored.
CREATE TABLE sign_ins (
  sign_in_token_hash TEXT PRIMARY KEY,
  sign_in_key_id TEXT NOT NULL,
  sign_in_seen_at INTEGER NOT NULL,
  sign_in_expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_ins_by_key ON sign_ins (sign_in_key_id, sign_in_seen_at);
CREATE INDEX sign_ins_by_expiry ON sign_ins (sign_in_expires_at);

-- The audit trail. The columns beside the record are for order and filters.
CREATE TABLE audit (
  audit_at INTEGER NOT NULL,
  audit_id BLOB NOT NULL CHECK (length(audit_id) = 16),
  audit_action TEXT NOT NULL,
  audit_key_id TEXT,
  audit_subject TEXT NOT NULL,
  audit_record TEXT NOT NULL,
  PRIMARY KEY (audit_at, audit_id)
) STRICT, WITHOUT ROWID;

-- Signing out deletes the sign-in. The file belongs to one node, so no node of an earlier release reads this table.
DROP TABLE sign_outs;
