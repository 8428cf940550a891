"""The base models on disk, their downloads, and the licence of the published ones."""

import os
from collections.abc import Callable

from utils.core.errors import AmharicTtsError
from utils.core.storage import read_object
from utils.studio import downloads, paths, runs
from utils.studio.downloads import StoredModel
from utils.ui import views
from utils.ui.i18n import describe_error, t
from utils.ui.page import PageContext, Panel, PanelRequest, notify
from utils.ui.views import cell, note
from utils.xtts.hub import LICENCE, VARIABLE, licence_accepted

Action = Callable[[PanelRequest], object]


def build_base_models(page: PageContext) -> None:
    def saying(phrase: str, action: Action) -> Callable[[PanelRequest], None]:
        def act(request: PanelRequest) -> None:
            action(request)
            notify(phrase)

        return act

    def delete(request: PanelRequest) -> None:
        size = downloads.delete(request.text("version"), page.output)
        notify("system.freed", size=f"{size / 1e6:,.0f}")

    actions = {
        "agree": saying("common.consent_saved", lambda request: downloads.give_consent(request.text("person"))),
        "withdraw": saying("system.consent_withdrawn", lambda _: downloads.withdraw_consent()),
        "licence": lambda _: {"licence": downloads.licence_text()},
        "download": saying(
            "system.download_started", lambda request: downloads.start(request.text("version"), page.output)
        ),
        "pause": saying("system.download_paused", lambda _: downloads.pause(page.output)),
        "cancel": saying("system.download_cancelled", lambda _: downloads.cancel(page.output)),
        "delete": delete,
    }
    Panel(page, "base-models", render, actions)


def render(request: PanelRequest) -> str:
    run = downloads.current(request.page.output)
    models = [downloads.base_model(name) for name in downloads.VERSIONS]
    rows = [[cell(model.version, classes="mark"), _state(model), views.gigabytes(model.size)] for model in models]
    buttons = [_buttons(model, run) for model in models]
    titles = ["system.base_version", "common.state", "system.size_disk"]
    if any(buttons):
        titles.append("common.actions")
        rows = [[*row, views.html_cell(each)] for row, each in zip(rows, buttons, strict=True)]
    return _licence(request) + views.table(titles, rows) + (_run_html(run) if run else "")


def _licence(request: PanelRequest) -> str:
    """Show who accepted the licence, and how to accept, withdraw and read it."""
    accepted = licence_accepted(paths.LICENCE_CONSENT)
    buttons = []
    if os.environ.get(VARIABLE) == "1":
        state = t("system.accepted_by_variable", name=VARIABLE)
    elif accepted:
        stored = read_object(paths.LICENCE_CONSENT)
        who, when = stored.get("accepted_by") or "–", str(stored.get("at", "–"))[:10]
        state = t("system.accepted", licence=LICENCE, who=who, when=when)
        buttons.append(views.button("withdraw", "system.withdraw_consent"))
    else:
        state = t("system.not_accepted", licence=LICENCE)
        buttons.append(views.text_field("person", "common.your_name", "system.your_name_hint"))
        buttons.append(views.button("agree", "system.accept_licence"))
    text = request.text("licence")
    shown = views.row(*buttons, views.button("licence", "system.show_licence")) + (views.code(text) if text else "")
    return note("system.licence_summary") + note(state) + shown


def _state(model: StoredModel) -> str:
    begun = "incomplete" if model.files or model.is_begun else "not_installed"
    return f"system.{'installed' if model.is_whole else begun}"


def _buttons(model: StoredModel, run: runs.Run | None) -> str:
    """Return what can be done with a version."""
    question = t("system.ask_delete_version", name=model.version)
    return "".join(
        views.button("delete", "common.delete", "stop", version=model.version, confirm=question)
        if action == "delete"
        else views.button(action, f"system.{action}", version=model.version)
        for action in downloads.available_actions(model, run)
    )


def _run_html(run: runs.Run) -> str:
    state = run.current_state()
    try:
        version = downloads.version_of(run)
    except AmharicTtsError as error:
        return note(describe_error(error))
    status = f"{version} · {t(f'status.{state.status}')} {state.reason()}"
    if state.status == "finished" and not (run.project.root.parent / paths.FIELD_TEST).exists():
        return note(status) + note("system.field_test")
    current = views.newest_progress(run)
    if not current.total or state.status == "finished":
        return note(status)
    done, total = f"{current.step / 1e6:,.0f}", f"{current.total / 1e6:,.0f}"
    label = t("system.download_progress", done=done, total=total, part=current.part)
    left = views.time_left(current.seconds_left if state.status in runs.ACTIVE else None)
    return views.progress(views.joined(status, label, left), current.step, current.total)
