"""`ncheck predict`: what NCCL will do on a cluster, and what a training run will exchange, before it starts."""
