"""What a sweep found, from its trials alone (`mclab.plan.space_trials.Trials`): tables, page, plots, terminal text.

For callers:
    `write.write_tables(found, folder) -> list[Path]`: sweep.md, trials.csv and .parquet, importances.csv,
        marginals.csv; front.csv where there are two objectives.
    `plots.write_plots(found, folder, formats=("png", "svg")) -> list[Path]`: importances, marginals, contour, front;
        each left out where there is nothing to draw.
    `terminal.terminal_text(found, width=120) -> str`: best trials or front, importances, what is unusual.
"""
