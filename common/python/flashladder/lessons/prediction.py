"""Predictions: a number that the reader writes down before it is measured, and the score afterwards."""

from dataclasses import dataclass

from flashladder.core.errors import FlashLadderError
from flashladder.lessons.display import note, show, table


@dataclass
class Prediction:
    question: str
    guess: float | None
    unit: str = ""
    measured: float | None = None

    def score(self, measured: float) -> None:
        """Shows what was measured beside the guess, and how far off it was."""
        self.measured = measured
        show(note(self.verdict(), f"{self.question}:"))

    def verdict(self) -> str:
        if self.measured is None:
            return "not measured yet"
        found = f"measured {number(self.measured)}{self._unit()}"
        if self.guess is None:
            return f"{found} (no guess was written down)"
        return f"{found}, your guess {number(self.guess)}{self._unit()}: {self.distance()}"

    def distance(self) -> str:
        if self.guess == self.measured:
            return "exactly right"
        if not self.measured or not self.guess or (self.guess < 0) != (self.measured < 0):
            return f"off by {number(abs(self.guess - self.measured))}"
        ratio = self.guess / self.measured
        if abs(ratio - 1) <= 0.1:
            return f"within {max(1, round(100 * abs(ratio - 1)))} percent"
        return f"{ratio:.3g} times what it is" if ratio > 1 else f"1/{1 / ratio:.3g} of what it is"

    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


_predictions: dict[str, Prediction] = {}  # of this session, by question


def predict(question: str, guess: float | None = None, unit: str = "") -> Prediction:
    """Writes down a guess. None stops nothing: score() then only tells what was measured."""
    if guess is not None and (isinstance(guess, bool) or not isinstance(guess, (int, float))):
        raise FlashLadderError(f"A guess is a number, or None for no guess; this is {guess!r}.")
    prediction = _predictions[question] = Prediction(question, guess, unit)
    if guess is None:
        show(note("no guess yet: put a number in place of None and run this cell again.", question + ":"))
    else:
        show(note(f"you say {number(guess)}{prediction._unit()}.", question + ":"))
    return prediction


def scorecard() -> None:
    """All predictions of this session with what was measured."""
    rows = [
        (
            one.question,
            "-" if one.guess is None else number(one.guess),
            "-" if one.measured is None else number(one.measured),
            one.unit,
            one.distance() if None not in (one.guess, one.measured) else "",
        )
        for one in _predictions.values()
    ]
    columns = ("prediction", "your guess", "measured", "unit", "")
    show(table("Your predictions", columns, rows, right=(1, 2)) if rows else note("There are no predictions yet."))


def number(value: float) -> str:
    """20480 -> 20,480; 279.83 -> 279.8"""
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"
