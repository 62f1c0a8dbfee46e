"""docs/results.md, the results folder and the page, from recorded answers."""
