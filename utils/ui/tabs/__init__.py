"""One file a tab; each has ``build(page)``, which lays out widgets, ties them to handlers and returns the tab."""
