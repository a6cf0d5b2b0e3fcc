"""How many seeds each cell of a plan needs, where seeds are added until every row is told.

scipy is imported for such a plan alone: a dry run of any other must start fast.
"""

from mclab.config.run import RunConfig
from mclab.plan.plan import Plan
from mclab.plan.select import Curve, Lookup, Wanted, runs_needed


def wanted_by(plan: Plan, curve: Curve | None = None) -> Wanted | None:
    """How many seeds each cell needs, by what is stored; `None` for a plan whose seeds are fixed."""
    if plan.until is None:
        return None
    from mclab.report.table.planned_looks import looks_so_far

    return lambda lookup: looks_so_far(plan, lookup, curve).wanted


def needed(plan: Plan, lookup: Lookup, curve: Curve | None = None) -> list[RunConfig]:
    """The runs that the plan asks for by what is stored, stored or not."""
    wanted = wanted_by(plan, curve)
    return runs_needed(plan, lookup, wanted and wanted(lookup))
