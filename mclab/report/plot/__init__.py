"""The figures of a grid, as `mclab plot` calls them:

kinds.py        every kind by name, and the files; the only module that a caller needs
lines.py        accuracy along a numeric key; points.py: a line for each row, where there is no such key
curves.py       learning curves
slices.py       accuracy by slice, and against a number of things to be kept (capacity)
heat.py         depth by length; state.py: accuracy against state size; effects.py: effects of a whole grid
gates.py        a gate's weights (`mclab sample`)
slice_cells.py  cells by slice, for slices and heat
style.py        colours, and how a cell's mean, interval and seeds are drawn
figure.py       title, legend, panels and foot; layout.py: width and size of type
svg.py          a figure inside an HTML page
"""
