"""The inbox's table in a database of the user's: PostgreSQL, MySQL and MariaDB. It is the table that the SDKs' outboxes write
and drain, whose definition `sdks/vectors/outbox.json` holds for all of them."""
