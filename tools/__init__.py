"""Programs for the maintainers; not part of the product."""
