"""What happened, in slots of a minute: counted by each node, kept in the store, read by any node for all of them."""
