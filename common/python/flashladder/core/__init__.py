"""What all folders use: errors, paths, the C ABI, problems, 16-bit types, devices, output for people."""
