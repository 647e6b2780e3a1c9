"""Cheap routers, which train no network: a router has to beat them. The paper has none of them."""
