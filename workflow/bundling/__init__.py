"""A run as one file, and that file as a run again."""
