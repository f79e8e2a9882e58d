"""The preflight hook: stop a job that would hang, from inside it. It runs in the job's own processes."""
