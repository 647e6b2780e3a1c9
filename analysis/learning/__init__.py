"""The study of learning: what training did to the routers of a preset, as a report, tables and curves."""
