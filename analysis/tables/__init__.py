"""One table an artefact: ``build``, from the results of a run; raises UserError for cells that do not fit."""
