"""From features to finished updates: what is read, in which order, and how it is packed for the model."""
