"""The store in Amazon DynamoDB: one table, one request for each thing, a transaction for each shard's batch."""
