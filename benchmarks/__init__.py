"""Programs that measure; started by hand, never by the tool."""
