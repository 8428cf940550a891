"""Training: data loading, the loop, resume state and recovery, memory estimates."""
