"""`git coord page`: the overview, live in a browser. Its libraries are an extra, `gitcoord[page]`."""
