"""The command line, and what stands behind its words.

cli                                         all commands and their options
stage, other_parts, throughput, timeline, explain       `make stage-NN` and `make bench`
demo, exercise, puzzle, verbs, blank, following         for learners
classroom                                   for instructors
results, markdown and the ..._pages         `make results`: tables and pictures of the records in the documents
figures, figure_lists, quotes                           numbers that texts quote, held against the records
gpu_report, check_report, tune, tune_shapes, torch_check        what a GPU is needed for
testing, tested, mutants, fuzz              tests
format, release, docs, page, browser        the project and its site
"""
