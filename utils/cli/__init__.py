"""One command per file: ``add_arguments(parser)`` declares its arguments, ``run(arguments)`` returns the exit code.

A command that starts a run also has ``CONFIG`` (its settings) and ``work(job, config)`` (done by the child process).
"""
