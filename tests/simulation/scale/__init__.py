"""The real engine on up to 200 nodes in virtual time: what each node costs, and how long faults last."""
