"""Draw the figures of a grid. `mclab plot` calls the kinds by these names:

kinds.py        all kinds by name, and their files; the only module that a caller needs
lines.py        accuracy against a numeric key; points.py: a line for each row, where there is no such key
curves.py       learning curves
slices.py       accuracy by slice, and against the number of items to memorise (capacity)
heat.py         depth by length; state.py: accuracy against state size; effects.py: effects of a whole grid
gates.py        a gate's weights (`mclab sample`)
slice_cells.py  cells by slice, for slices and heat
style.py        colours, and how a cell's mean, interval and seeds are drawn
figure.py       title, legend, panels and foot; layout.py: width and font size
svg.py          a figure inside an HTML page
"""
