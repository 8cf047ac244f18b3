"""BT, block tridiagonal: an implicit solver of the Navier-Stokes equations, whose approximate
factors couple all five components of the state (RNR-94-007, chapter 3)."""

from __future__ import annotations

from shrimpmx.applications.nas.adi.block_solve import BlockLines
from shrimpmx.applications.nas.adi.solver import Flow, ImplicitSolver, Problem
from shrimpmx.applications.nas.flow.cell import AXES

PROBLEMS = {
    "S": Problem(
        12, 0.01, 60,
        (1.7034283709541311e-01, 1.2975252070034097e-02, 3.2527926989486055e-02,
         2.6436421275166801e-02, 1.9211784131744430e-01),
        (4.9976913345811579e-04, 4.5195666782961927e-05, 7.3973765172921357e-05,
         7.3821238632439731e-05, 8.9269630987491446e-04),
    ),
    "W": Problem(
        24, 0.0008, 200,
        (0.1125590409344e03, 0.1180007595731e02, 0.2710329767846e02, 0.2469174937669e02,
         0.2638427874317e03),
        (0.4419655736008e01, 0.4638531260002e00, 0.1011551749967e01, 0.9235878729944e00,
         0.1018045837718e02),
    ),
    "A": Problem(
        64, 0.0008, 200,
        (1.0806346714637264e02, 1.1319730901220813e01, 2.5974354511582465e01,
         2.3665622544678910e01, 2.5278963211748344e02),
        (4.2348416040525025e00, 4.4390282496995698e-01, 9.6692480136345650e-01,
         8.8302063039765474e-01, 9.7379901770829278e00),
    ),
    "B": Problem(
        102, 0.0003, 200,
        (1.4233597229287254e03, 9.9330522590150238e01, 3.5646025644535285e02,
         3.2485447959084092e02, 3.2707541254659363e03),
        (5.2969847140936856e01, 4.4632896115670668e00, 1.3122573342210174e01,
         1.2006925323559144e01, 1.2459576151035986e02),
    ),
}  # fmt: skip


class BlockTridiagonal(ImplicitSolver):
    """BT."""

    name = "BT"
    title = "block tridiagonal"
    problems = PROBLEMS
    numbers_per_point = 100

    def advance(self, flow: Flow) -> None:
        for axis in AXES:
            flow.solve(axis, BlockLines)

    def operations(self, points: int) -> float:
        return 3478.8 * points**3 - 17655.7 * points**2 + 28023.7 * points
