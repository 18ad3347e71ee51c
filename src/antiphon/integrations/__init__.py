"""Other frameworks over our backends: each module needs its framework, and is imported by its name."""
