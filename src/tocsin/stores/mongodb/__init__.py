"""The store in a MongoDB database: one transaction for each batch of a shard."""
