"""The store in a keyspace of Apache Cassandra."""
