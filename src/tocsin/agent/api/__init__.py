"""What tenants ask for: submit, look, tag, delete. Sends commands, reads; decides nothing."""
