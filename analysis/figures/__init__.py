"""One figure an artefact: a function from the results of a run to a picture and the data behind it."""
