"""What the agent answers about a running job; these modules travel to a node when triage asks for the first of them."""
