"""Speculative decoding without a model: what theory predicts, and what tables measure."""

from xpress_struct.lab.simulate.costs import CPU, GPU, RoundCosts, read_costs, replaced
from xpress_struct.lab.simulate.measure import measure_costs
from xpress_struct.lab.simulate.report import as_data, as_text
from xpress_struct.lab.simulate.run import Experiment, Outcome, Speed, simulate
from xpress_struct.lab.simulate.tables import Recipe

__all__ = [
    "CPU",
    "GPU",
    "Experiment",
    "Outcome",
    "Recipe",
    "RoundCosts",
    "Speed",
    "as_data",
    "as_text",
    "measure_costs",
    "read_costs",
    "replaced",
    "simulate",
]
