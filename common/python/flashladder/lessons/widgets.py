"""Sliders that redraw a picture, and the plain picture where there are none."""

import importlib.util
from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from flashladder.core.errors import FlashLadderError
from flashladder.lessons.display import live, show, show_changing


def slider(draw: Callable[..., Figure], **choices: Sequence) -> None:
    """A picture with a control for each argument of `draw`, e.g. slider(plot.swizzle, d=[128, 64], on=[False, True]).

    Each argument comes with its values; the first of each is shown. The picture is an ordinary output and controls
    only replace it, so it is there in a saved notebook, too, and where ipywidgets is not installed.
    """
    for name, values in choices.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise FlashLadderError(f"slider: {name} needs a list of its values, e.g. {name}=[64, 128].")
    first = {name: values[0] for name, values in choices.items()}
    if not live():
        return
    if not importlib.util.find_spec("ipywidgets"):
        show(draw(**first))
        return
    controls = {name: _control(name, values) for name, values in choices.items()}
    show(_row(list(controls.values())))
    handle = show_changing(draw(**first))

    def redraw(change) -> None:
        handle.update(draw(**{name: control.value for name, control in controls.items()}))

    for control in controls.values():
        control.observe(redraw, names="value")


def _control(name: str, values: Sequence):
    import ipywidgets

    if set(values) == {False, True} and all(isinstance(value, bool) for value in values):
        return ipywidgets.Checkbox(value=values[0], description=name)
    return ipywidgets.SelectionSlider(options=list(values), value=values[0], description=name)


def _row(controls: list):
    import ipywidgets

    return ipywidgets.HBox(controls)
