"""Message buses behind `tocsin.ports.bus`."""
