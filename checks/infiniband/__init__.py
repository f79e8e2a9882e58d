"""InfiniBand and RoCE ports."""
