"""What triage reads on the nodes of a job that runs: a fact per module, as in ncheck.facts."""
