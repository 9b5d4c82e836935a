"""What the adapters for relational databases share."""
