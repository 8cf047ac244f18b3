"""Plots of results: a result becomes charts, which are data; a chart becomes a picture."""
