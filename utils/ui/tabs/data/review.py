"""Review: the list of clips beside the open one, and every change that can be made to them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from utils.core.wording import rows as phrases
from utils.dataset import editor
from utils.dataset.editor import Edit
from utils.dataset.store import ClipPage, Store, View
from utils.studio import runs
from utils.studio.facts import InputError
from utils.studio.paths import Project
from utils.ui import views
from utils.ui.i18n import t
from utils.ui.page import Action, PageContext, Panel, PanelRequest, Updates, notify
from utils.ui.tabs import pronunciation
from utils.ui.tabs.data import clip_render
from utils.ui.views import button, message_box, note

WRITERS = ("prepare", "features")  # runs that read or write the clips all the time; a training has lists of its own
DECISIONS = ("approve", "exclude", "restore")  # edits after which the next clip is opened
SCRIPT = Path(__file__).with_name("review.js")

Change = Callable[[Path, str, PanelRequest], Edit]  # changes the dataset in a folder, of which a clip is open


CHANGES: dict[str, Change] = {
    "approve": lambda folder, clip, _: editor.approve(folder, [clip]),
    "exclude": lambda folder, clip, request: editor.exclude(folder, [clip], _reason(request, "why")),
    "restore": lambda folder, clip, _: editor.restore(folder, [clip]),
    "trim": lambda folder, clip, request: editor.trim(folder, clip, request.number("start"), request.number("end")),
    "split": lambda folder, clip, request: editor.split_clip(folder, clip, request.number("at")),
    "merge_next": lambda folder, clip, _: editor.merge_next(folder, clip),
    "undo": lambda folder, *_: editor.undo(folder),
    "repair_list": lambda folder, *_: editor.repair_list(folder),
    "approve_selected": lambda folder, _, request: editor.approve(folder, _selected(request)),
    "restore_selected": lambda folder, _, request: editor.restore(folder, _selected(request)),
    "exclude_selected": lambda folder, _, request: editor.exclude(
        folder, _selected(request), _reason(request, "reason_for_all")
    ),
}


def build_review(page: PageContext) -> None:
    handlers = {name: _changing(change) for name, change in CHANGES.items()}
    handlers |= {"open": _save_text, "save_text": _save_text}
    handlers["use_stored"] = lambda request: {"textBase": None, "kept": str(request.turn)}
    handlers[pronunciation.FIX] = pronunciation.fix
    Panel(page, "review", render, handlers, script=SCRIPT.read_text(encoding="utf-8"))


def _changing(change: Change) -> Action:
    """Return the action that makes a change: it saves the open text, acts, and opens the clip that came of it.

    After a decision on the open clip that is the next one of the list.
    """

    def act(request: PanelRequest) -> Updates:
        _save_text(request)
        refuse_while_busy(request.project)
        opened, before = request.text("of"), _listed(request)
        edit = change(request.project.dataset, opened, request)
        if len(edit.clips) > 1:  # else the button "Undo" says so
            notify("data.done_count", what=_edit_name(edit.name), count=len(edit.clips))
        if edit.name in DECISIONS and request.text("act") != "undo":
            if opened not in before:  # its key was pressed twice: the next clip is open already
                return {}
            if any(clip.id == opened for clip in edit.clips):
                return {"clip": _next_clip(opened, before, _listed(request))}
        return {"clip": next((clip.id for clip in edit.clips if clip.status == "kept"), opened)}

    return act


def _next_clip(opened: str, before: list[str], after: list[str]) -> str:
    """Return the clip that follows in the list, which a decision may have taken the open one from."""
    place = after.index(opened) + 1 if opened in after else before.index(opened)
    return after[min(place, len(after) - 1)] if after else ""


def _listed(request: PanelRequest) -> list[str]:
    """Return the clips of the page that is shown."""
    store = Store(request.project.dataset)
    return [clip.id for clip in _page(request, store, store.reasons())[1].clips]


def _page(request: PanelRequest, store: Store, reasons: Mapping[str, int]) -> tuple[View, ClipPage]:
    reason, number = request.text("reason"), request.text("page")
    reason = reason if reason in reasons else ""  # of the last clip that was restored
    status, order = request.text("status") or "unchecked", request.text("order") or "worst"
    status = "excluded" if reason and status != "all" else status  # no other list has clips with a reason
    view = View(status, reason, request.text("search"), order)
    return view, store.page(view, int(number) if number.isdecimal() else 1)


def _save_text(request: PanelRequest) -> None:
    """Save the text of the open clip if it was edited, before anything takes its place."""
    store, text = Store(request.project.dataset), request.text("text")
    clip = store.find([request.text("of")]).get(request.text("of")) if store.exists else None
    if clip and text.strip() and request.is_edited("text", clip.text):
        refuse_while_busy(request.project)
        (clip,) = editor.set_text(store.folder, clip.id, text, request.typed_on("text")).clips
        request.note_saved("text", clip.text)
        notify("data.text_saved")


def _selected(request: PanelRequest) -> list[str]:
    ticked = request.fields.get("ticked")
    if not isinstance(ticked, list) or not ticked:
        raise InputError("no_clip")
    return [str(name) for name in ticked]


def _reason(request: PanelRequest, name: str) -> str:
    """Return the reason of an exclusion: one that is offered, or the person's own words."""
    offered = {clip_render.reason_text(reason): reason for reason in editor.HEARD}
    return offered.get(request.text(name), request.text(name))


def refuse_while_busy(project: Project) -> None:
    runs.require_idle(project, *WRITERS)


def _edit_name(name: str) -> str:
    key = f"data.edit_{name}"
    return t(key) if key in phrases() else name  # the command line has more kinds of edits


def render(request: PanelRequest) -> str:
    store = Store(request.project.dataset)
    if not store.exists:
        return note("data.no_clips")
    reasons = store.reasons()
    view, page = _page(request, store, reasons)
    last = editor.last_edit(store.folder)
    undo = button("undo", t("data.undo", what=_edit_name(last)), "quiet", key="Ctrl Z") if last else ""
    opened = _editor(request, store, clip_render.place(page, request.text("clip")), undo)
    clips = (
        clip_render.filters(view, _counts(store), reasons, page, "" if opened else undo)
        + clip_render.selected_actions()
        + clip_render.rows(page, request.text("clip"), store.folder)
        + clip_render.pager(page)
    )
    shown = views.element("div", clip_render.repair(store) + clips, class_="list", id="clips")
    if opened:
        shown += views.element("div", opened, class_="editor", id="clip-editor", tabindex="-1")
    return views.element("div", shown, class_="sides")


def _counts(store: Store) -> dict[str, int]:
    """Return the number of clips of each list."""
    counts = {name: total.clips for name, total in store.totals().items()}
    return counts | {"unchecked": counts["kept"] - counts["approved"], "all": counts["kept"] + counts["excluded"]}


def _editor(request: PanelRequest, store: Store, place: str, undo: str) -> str:
    """Show the open clip and what can be done with it; without one, nothing."""
    name = request.text("clip")
    clip = store.find([name]).get(name) if name else None
    is_open = request.text("of") == name
    is_draft = is_open and request.text("act") == "draft"
    if clip is None:
        return message_box("warning", "data.clip_is_gone", request.text("text")) if is_draft else ""
    busy = runs.active_run(request.project, *WRITERS)
    reason = t("data.clips_in_use_by_run", name=views.run_title(busy)) if busy else ""
    draft = request.text("text") if is_draft else clip.text
    box = views.text_area("text", "data.clip_text", "", clip.text, f"{clip.id} {request.text('kept')}")
    if is_open and request.is_overtaken("text", clip.text):
        box += views.conflict("text", clip.text, "save_text")
    return clip_render.editor(clip, store.following(clip), draft, box, store.folder, reason, place, undo)
