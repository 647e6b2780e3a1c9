"""One table an artefact: a function from the results of a run to what a reader sees."""
