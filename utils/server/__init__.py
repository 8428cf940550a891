"""An HTTP server for speech, compatible with clients of OpenAI's API."""
