"""InfiniBand and RoCE: ports that are down, slow, missing or without a subnet manager."""
