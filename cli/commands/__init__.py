"""The commands of ``gmr``, one module a theme; importing one adds its commands to the application."""
