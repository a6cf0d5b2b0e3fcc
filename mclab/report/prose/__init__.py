"""The sentences under a table:

verdict.py     which rows differ from the baseline, the second test on seeds where both learned
sequential.py  the same for a grid whose seeds are added until every row is told
advice.py      what to do next, as commands to be pasted
effects.py     which effects of a whole grid are told from nothing
notes.py       how to read the table, and what is unusual (`alarms`)
"""
