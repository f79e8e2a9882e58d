"""What an all-reduce should give: computed from the links that were found."""
