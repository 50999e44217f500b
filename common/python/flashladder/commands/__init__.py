"""The command line, and what stands behind its words."""
