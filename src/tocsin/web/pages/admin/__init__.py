"""Administration: sign-in and sessions, the cluster, and the namespaces."""
