"""Where a run stands: its cells, what they have asked, how long they will still take; read from what they leave."""
