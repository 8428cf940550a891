"""Behind the Data tab: where recordings come from, what became of them, and the clips one by one."""
