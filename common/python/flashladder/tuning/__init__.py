"""Tables of instances, what goes together and what it takes; the tuner, its store and its record."""
