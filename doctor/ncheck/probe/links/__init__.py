"""What the links of a node should give: PCIe, NVLink, NICs, and which of them limits an all-reduce."""
