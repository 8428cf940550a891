"""The page: forms made from the config fields, tabs that start child processes and read their folders."""
