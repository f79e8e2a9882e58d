"""The built-in checks: one file a check, a folder a topic. They import nothing but `doctor`."""
