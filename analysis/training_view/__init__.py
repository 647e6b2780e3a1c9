"""The training page of the site: what every learned method logged while it learned, and what it chose."""
