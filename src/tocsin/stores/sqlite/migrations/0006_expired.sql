-- The status of a finished timer may also be 'expired'. Changing only the text of the constraint, in the way that SQLite's
-- documentation describes for the removal of a CHECK, takes no time; copying the table could take minutes. Every row that
-- satisfied the former constraint satisfies the new one.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema
SET sql = replace(sql, 'IN (''completed'', ''failed'', ''canceled'')', 'IN (''completed'', ''failed'', ''canceled'', ''expired'')')
WHERE type = 'table' AND name = 'history';

-- Other connections read the schema again only after a statement that defines something.
CREATE TABLE schema_changed (unused INTEGER) STRICT;
DROP TABLE schema_changed;

-- This connection reads it again now.
PRAGMA writable_schema = RESET;
