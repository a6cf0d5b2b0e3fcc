"""From the records of a plan to the cells of its table.

The way of a number: `row.score` of a record, `rows.row_of` a cell of the plan, `summary.summarise` all of them,
`columns.shown_columns` as text.
"""
