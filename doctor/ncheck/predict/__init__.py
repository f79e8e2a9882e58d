"""`ncheck predict`: what a training run will exchange between its GPUs, before it starts."""
