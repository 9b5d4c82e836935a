"""Files that declare namespaces, flows and schedules: `tocsin apply` and `tocsin pull`."""
