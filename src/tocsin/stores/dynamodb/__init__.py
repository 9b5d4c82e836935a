"""The store in Amazon DynamoDB: one table for all nodes, one transaction for each batch of a shard."""
