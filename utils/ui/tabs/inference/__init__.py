"""Behind the Inference tab: the model in memory, takes on disk, and what the page shows of them."""
