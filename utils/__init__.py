"""Fine-tune XTTS v2 on Amharic: data, training, speech, and the page that joins them."""
