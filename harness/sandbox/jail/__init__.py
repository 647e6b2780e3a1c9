"""Code of a worker's processes. A bare interpreter (``-S``) imports it, so it uses only the standard library."""
