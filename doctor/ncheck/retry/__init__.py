"""`ncheck launch --retry`: a job that failed is started again, without the nodes that are proved to be at fault."""
