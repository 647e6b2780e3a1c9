"""One module an artefact of the reports: each turns its source into a table or a figure (``config/artefacts.yaml``)."""
