"""From recordings to clips with text that one can trust: the steps are pure and work on a frozen Clip."""
