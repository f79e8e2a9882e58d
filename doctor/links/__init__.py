"""What the links between nodes say together, what that means for a job, and what mends it. Pure, over facts alone."""
