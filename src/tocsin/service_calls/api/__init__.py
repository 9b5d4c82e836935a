"""The tenants' interface: submit, read, tag and delete service calls. It sends commands and reads; it makes no
decisions."""
