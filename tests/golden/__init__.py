"""Golden data: what a release stored, kept in small files, and the test that the present code opens and reads them."""
