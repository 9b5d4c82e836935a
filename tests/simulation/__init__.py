"""The real engine in virtual time: several nodes, one store behind faulty links, seeded from end to end."""
