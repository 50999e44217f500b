"""The pages of `make docs`."""
