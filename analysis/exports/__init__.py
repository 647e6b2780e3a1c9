"""Results for other tools: tables and figures' data, items, calls and decisions as parquet, training curves as CSV."""
