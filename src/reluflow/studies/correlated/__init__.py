"""The study and the figures of the correlated-inputs paper (arXiv 2306.06479)."""

from reluflow.studies.contract import Recipe, Study
from reluflow.studies.correlated import (
    coordinates,
    fig1,
    fig2,
    rank_norm,
    two_teachers,
    wider_cone,
)
from reluflow.studies.correlated.findings import findings
from reluflow.studies.correlated.preset import DOCUMENT

__all__ = ["FIGURES", "STUDY"]

STUDY = Study(
    paper="correlated",
    title="Learning one neuron from correlated inputs",
    question=(
        "A network with many small ReLU neurons is trained on points within pi/4 of a single "
        "teacher neuron. In which order does it learn, which of the many networks that fit does it "
        "find, and has that network the least norm?"
    ),
    document=DOCUMENT,
    findings=findings,
)

FIGURES: list[Recipe] = [
    *fig1.RECIPES,
    *fig2.RECIPES,
    *coordinates.RECIPES,
    *two_teachers.RECIPES,
    *rank_norm.RECIPES,
    *wider_cone.RECIPES,
]
