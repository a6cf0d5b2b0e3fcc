"""The sentences under a table:

verdict.py     which rows differ from the baseline; the second test, on the seeds where both learned
sequential.py  verdicts for a sequential grid (seeds are added until every row has a verdict)
advice.py      what to do next, as commands that can be pasted
effects.py     which effects of a whole grid differ from 0
notes.py       how to read the table, and what is unusual (`alarms`)
"""
