"""What stands behind the Fine-tuning tab: its fields, what it asks child processes, and what it shows of a run."""
