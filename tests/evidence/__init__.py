"""Long measurements, each a command that prints its table: ``make evidence`` runs them one after the other."""
