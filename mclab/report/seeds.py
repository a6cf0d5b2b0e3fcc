"""Find how many seeds each cell of a sequential grid needs.

scipy is imported only for such a grid, so that a dry run of any other grid starts fast.
"""

from mclab.config.run import RunConfig
from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup, Wanted, runs_needed


def wanted_by(plan: Plan, curve: Curve | None = None) -> Wanted | None:
    """Return a function from a `Lookup` to the number of seeds that each cell needs.

    `None` for a plan with fixed seeds.
    """
    if plan.until is None:
        return None
    from mclab.report.table.planned_looks import looks_so_far

    return lambda lookup: looks_so_far(plan, lookup, curve).wanted


def needed(plan: Plan, lookup: Lookup, curve: Curve | None = None) -> list[RunConfig]:
    """Return all runs that the plan needs, given the stored records. Runs that are already stored are included."""
    wanted = wanted_by(plan, curve)
    return runs_needed(plan, lookup, wanted and wanted(lookup))
