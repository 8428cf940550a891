"""What the page and the command line share: projects, uploads, takes, comparisons, disk usage."""
