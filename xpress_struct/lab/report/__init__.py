"""The report of a run: one HTML page that needs nothing else, and Markdown tables."""
