"""A trial as reports see it. It is defined in `mclab.plan.space_trials`, from where the report may import it."""

from mclab.plan.space_trials import Objective, SpaceAxis, Status, Trial, Trials

__all__ = ["Objective", "SpaceAxis", "Status", "Trial", "Trials"]
