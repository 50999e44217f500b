"""Stages that are built as a table of instances, autotune and shapes, and the tuner that chooses among these.

configuration, rules, space                         of autotune: what there is, and what goes together
shapes                                              the same of shapes
instances, shape_table                              their tables, and any configuration in a library of its own
model, registers, explain                           what a configuration takes, predicted
tune, shape_tuner, gpu_times, store                 the tuner: what it does, on a GPU, and remembers
record, tables                                      what it leaves, and tables of that
"""
