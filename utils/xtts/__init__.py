"""All that touches coqui's XTTS: its weights, its vocabulary, and the text that it reads."""
