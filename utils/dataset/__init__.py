"""From recordings to clips with text that one can trust: pure steps over a frozen Clip; only build.py writes."""
