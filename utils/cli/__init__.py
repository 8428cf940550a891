"""One verb a file: ``add_arguments(parser)`` says what it takes, ``run(arguments)`` does it and returns the exit code.

A verb that starts a run also has ``CONFIG`` (its settings) and ``work(job, config)`` (what the child process does).
"""
