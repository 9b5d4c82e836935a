"""What the API and the pages share of HTTP: structs, their conversion, reading bodies, keys, errors and their statuses."""
