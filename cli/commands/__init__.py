"""Commands of ``gmr``, one module per topic. Importing a module registers its commands."""
