"""How many seeds each cell of a plan needs, where seeds are added until every row has a verdict.

scipy is imported only for such a plan, so that a dry run of any other plan starts fast.
"""

from mclab.config.run import RunConfig
from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup, Wanted, runs_needed


def wanted_by(plan: Plan, curve: Curve | None = None) -> Wanted | None:
    """Return a function from a `Lookup` to the number of seeds that each cell needs, given the stored records.

    `None` for a plan with fixed seeds.
    """
    if plan.until is None:
        return None
    from mclab.report.table.planned_looks import looks_so_far

    return lambda lookup: looks_so_far(plan, lookup, curve).wanted


def needed(plan: Plan, lookup: Lookup, curve: Curve | None = None) -> list[RunConfig]:
    """Return all runs that the plan needs, given the stored records; runs that are stored already are among them."""
    wanted = wanted_by(plan, curve)
    return runs_needed(plan, lookup, wanted and wanted(lookup))
