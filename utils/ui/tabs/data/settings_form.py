"""The settings of a preparation, filled from the newest run of the project, and what can be done with them."""

from functools import partial
from typing import Any

import gradio as gr

from utils.config import SEPARATOR, DatasetConfig
from utils.config.flags import command_line
from utils.core.errors import AmharicTtsError
from utils.core.languages import AMHARIC
from utils.dataset import bulk_edits
from utils.dataset.store import Store
from utils.recognition.recognisers.choice import RECOMMENDED
from utils.studio import runs, uploads
from utils.studio.paths import Project
from utils.ui import views
from utils.ui.i18n import describe_problems, t
from utils.ui.page import PageContext, Panel, PanelRequest
from utils.ui.settings_form import Check, SettingsForm, Values, check_action, values_of
from utils.ui.tabs.data.review import refuse_while_busy
from utils.ui.views import message_box

VERB = "prepare"
GROUPS = {
    "": "language",
    "data.links": "corpus hours columns replace_texts cookies proxy",
    "data.transcription": "speaker recogniser recogniser_model second_model check_texts repair_list "
    "device compute_type",
    "data.segmentation": "segmenter vad_threshold energy_threshold_db min_seconds max_seconds padding_seconds "
    "min_pause_seconds min_speech_seconds merge_pause_seconds",
    "data.quality_filters": "min_speech_ratio min_snr_db max_clipping min_chars_per_second max_chars_per_second "
    "min_confidence max_second_cer",
    "data.loudness_and_evaluation": "normalise_loudness eval_share split_by workers engine",
}  # names of fields by the title of their group; the inputs are the sources of the project
LISTED = [(known.label, known.model) for known in RECOMMENDED[AMHARIC.code]]
SIZES = [(size, size) for size in ("tiny", "base", "medium", "large-v3-turbo")]
MODELS = [("", ""), *LISTED, *SIZES]  # the first is the recommended one


def build_form(page: PageContext) -> SettingsForm:
    """Lay out the form, and fill it with the settings of the newest preparation."""
    groups = {title: names.split() for title, names in GROUPS.items()}
    form = SettingsForm(DatasetConfig, groups, "data", suggestions={"recogniser_model": MODELS})

    def restore(project: str, settings: Values) -> Any:  # noqa: ANN401  # gradio's updates have no type
        try:
            return form.value(last_settings(page.open(project)), settings)
        except AmharicTtsError:  # not a valid name yet; the header says so
            return gr.skip()

    form.connect(page, restore)
    return form


def last_settings(project: Project) -> DatasetConfig:
    """Return the settings of the newest preparation; the defaults without one, or if it is damaged."""
    run = runs.newest_run(project, VERB)
    try:
        return DatasetConfig.load_own(run.config) if run else DatasetConfig()
    except AmharicTtsError:  # of an older version, or damaged
        return DatasetConfig()


def read_settings(values: Values, project: Project) -> DatasetConfig:
    """Return the settings of a run in this project; the error names every invalid field."""
    inputs = SEPARATOR.join(uploads.absolute_input(project, name) for name in uploads.read_inputs(project))
    return DatasetConfig.parse({**values_of(values), "inputs": inputs}, source="The form")


def start(project: Project, values: Values) -> runs.Start:
    return runs.start(VERB, read_settings(values, project), project)


def problems_box(error: AmharicTtsError) -> str:
    """Show each invalid field of a form by its name, else the error."""
    return message_box("error", *describe_problems(error))


def build_tools(page: PageContext, form: SettingsForm) -> None:
    """Lay out filtering again, and the equivalent command."""
    checks: dict[str, Check] = {
        "preview_filters": refilter,
        "rerun_filters": partial(refilter, apply=True),
        "show_command": show_command,
    }
    actions = {name: check_action(check, read_settings, problems_box) for name, check in checks.items()}
    Panel(page, "data-tools", _render_tools, actions, reads={"settings": form.widget})


def refilter(request: PanelRequest, config: DatasetConfig, *, apply: bool = False) -> str:
    if apply:
        refuse_while_busy(request.project)
    plan = bulk_edits.refilter(request.project.dataset, config, apply=apply)
    changes = [(old.status, new.status) for old, new in zip(plan.before, plan.after, strict=True)]
    counts = {
        "data.excluded_count": changes.count(("kept", "excluded")),
        "data.restored_count": changes.count(("excluded", "kept")),
        "data.in_use_count": len(plan.kept),
    }
    done = t("data.changes_applied" if apply else "data.preview_only")
    sentences = (t(key, count=count) for key, count in counts.items())
    return message_box("success", *sentences, done)


def show_command(request: PanelRequest, config: DatasetConfig) -> str:
    return views.code(f"{command_line(VERB, config)} --project {request.project.argument}")


def _render_tools(request: PanelRequest) -> str:
    can_filter = Store(request.project.dataset).exists
    filters = ("data.preview_filters", "data.rerun_filters") if can_filter else ()
    buttons = views.row(views.buttons(*filters, "common.show_command"))
    return views.details("data.tools", buttons + request.text("_found"), "more-tools")
