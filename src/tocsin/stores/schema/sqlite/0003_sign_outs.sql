-- Sign-ins to the web pages that were ended before their time, until they would have expired. A few rows, read whole.
CREATE TABLE sign_outs (
  sign_in_name TEXT PRIMARY KEY,
  sign_in_expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
