"""The Fine-tuning tab: its fields, its queries to child processes, and its views of a run."""
