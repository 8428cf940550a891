"""Speech over HTTP, for other programs: the calls of OpenAI's speech API, on this computer."""
