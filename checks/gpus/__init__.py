"""GPUs, their driver and their topology."""
