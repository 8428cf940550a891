"""The recognisers that come with the program; ``isolation`` loads each in a process of its own."""
