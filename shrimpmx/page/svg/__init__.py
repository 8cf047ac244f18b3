"""Panels of charts as SVG that stands in a page: it takes its colours from the page's style."""
