"""Marks as the simulator's tests have them."""


def pytest_configure(config):
    config.addinivalue_line("markers", "simulator_only: needs what only the simulator reports")
