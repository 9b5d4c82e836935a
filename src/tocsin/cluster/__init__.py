"""Nodes that work for one another: writes and questions brought to the node that can answer them."""
