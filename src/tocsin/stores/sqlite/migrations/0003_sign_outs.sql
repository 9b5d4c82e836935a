-- Sign-ins to the web pages that were ended early, until they would have expired. A few rows, all read at once.
CREATE TABLE sign_outs (
  sign_in_name TEXT PRIMARY KEY,
  sign_in_expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
