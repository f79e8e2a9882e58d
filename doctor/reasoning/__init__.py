"""What several checks, or checks and plan, reason with: majorities, subnets, ports, paths. Pure, over facts alone."""
