"""The report as a site: pages that open from the disk, need no server and ask no network."""
