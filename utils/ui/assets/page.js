// Replaces gradio's own words and corrects names for screen readers: a label that differs from the text on a button,
// and one on an element that may have none, mislead them; axe-core counts both as serious. Gradio has no event for parts
// that it renders; the style sheet gives them an animation without any frames, whose start is one.
const words = window.gradioWords;
const translate = (box) => {
  const language = document.documentElement.lang === "am" ? "am" : "en";
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), match = words.find((word) => Object.values(word).includes(text));
    if (match && match[language] !== text) walker.currentNode.data = ` ${match[language]} `;
  }
};
const corrections = {
  "button.upload-container": (box) => {
    box.removeAttribute("aria-label");
    box.removeAttribute("aria-dropeffect");
    translate(box);
  },
  ".toast-title": translate,
  "button.playback, div.empty": (box) => box.removeAttribute("aria-label"),
  ".toast-header": (head) => {  // its close button stays one
    head.removeAttribute("role");
    head.removeAttribute("tabindex");
  },
};
const correct = (box) => {
  for (const [selector, correction] of Object.entries(corrections)) if (box.matches(selector)) correction(box);
};
document.addEventListener("animationstart", ({animationName, target}) => { if (animationName === "rendered") correct(target); });
window.setLanguage = (language) => {
  document.documentElement.lang = language;
  document.querySelectorAll(Object.keys(corrections)).forEach(correct);
  document.dispatchEvent(new Event("language"));
};

// Marks the settings that an error names.
window.markInvalid = () => {
  const invalid = new Set([...document.querySelectorAll("[data-setting]")].flatMap((item) => item.dataset.setting.split(" ")));
  for (const setting of document.querySelectorAll("[id^=training-].setting")) {
    setting.classList.toggle("invalid", invalid.has(setting.id.slice("training-".length)));
  }
};

// What was chosen is kept for this tab of the browser, and for the next one that is opened.
window.keep = (name, value) => { for (const store of [sessionStorage, localStorage]) store.setItem(`amharic-${name}`, value); };
window.kept = (name) => sessionStorage.getItem(`amharic-${name}`) ?? localStorage.getItem(`amharic-${name}`);

// Keeps the focus of the keyboard: when its control leaves the document, another one near its place takes over, but none that opens.
let place = [];  // the control and what contains it
const next = (box) => box.isConnected && [...box.querySelectorAll("button, input:not([role=combobox]), select, textarea, summary")]
  .find((control) => !control.disabled && control.checkVisibility());
document.addEventListener("focusin", ({target}) => {
  place = [];
  for (let box = target; box; box = box.parentElement) place.push(box);
});
setInterval(() => {
  if (document.activeElement !== document.body || (place[0]?.isConnected && place[0].checkVisibility())) return;
  place.map(next).find(Boolean)?.focus();
}, 250);  // no event tells that the control that had it is gone

const opened = new Set();  // ids of details that stay open when they are rendered again
const closeDetails = (details) => { details.open = false; opened.delete(details.id); };

// The steps in the bar are the tabs; gradio's own, which they press, are hidden. "Next" opens one too, and moves the focus.
window.openStep = (name) => {
  if (name) document.body.dataset.step = name;
  for (const step of document.querySelectorAll("#steps [data-open]")) {
    step.setAttribute("aria-selected", step.dataset.open === `${document.body.dataset.step ?? "data"}-tab`);
  }
};
document.addEventListener("click", (event) => {
  const step = event.target.closest("[data-open]");
  if (step) {
    openStep(step.dataset.open.replace("-tab", ""));  // at once: gradio may be busy
    document.getElementById(`${step.dataset.open}-button`)?.click();
    document.querySelector(`#steps [data-open=${step.dataset.open}]`).focus();
    scrollTo(0, 0);
  }
  event.target.closest("[data-edit]")?.closest(".rail").classList.toggle("editing");
  if (event.target.closest("#close-system")) document.getElementById("open-system").focus();
  const menu = document.getElementById("projects-panel");
  if (menu && !event.target.closest("#projects-panel, #manage-projects, #bar, dialog")) {
    document.getElementById("manage-projects").click();
    if (document.activeElement === document.body || menu.contains(document.activeElement)) document.getElementById("manage-projects").focus();
  }
  for (const open of document.querySelectorAll("details.menu[open]")) {
    if (!open.contains(event.target) || event.target.closest("a, button")) closeDetails(open);
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog")) return;
  document.getElementById("close-system")?.click();
  document.querySelectorAll("details.menu[open]").forEach(closeDetails);
  if (document.getElementById("projects-panel")) document.getElementById("manage-projects").click();
  [...document.querySelectorAll(".sheet [data-close]")].find((button) => button.checkVisibility())?.click();
});

// Enter in a field does what the first button beside it does; a key that is held presses nothing again.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  if (event.repeat && event.target.matches("button")) event.preventDefault();
  if (event.repeat || !event.target.matches(".panel [type=text]:not([data-act], [list])")) return;
  const line = event.target.closest(".line"), rows = [line, line?.nextElementSibling];
  rows.map((row) => row?.querySelector("button[data-act]")).find((button) => button?.checkVisibility())?.click();
});

// A press counts once: the second half of a double click must not act on what the answer to the first put in its place.
// A button that starts something shows at once, for a while at most, that it was pressed.
const PRESSED_MS = 3000;
const aim = (button) => {
  const {page, first, playing, ...about} = button.dataset;  // to turn pages is harmless
  return button.id + button.textContent + JSON.stringify(about) + button.closest(".panel")?.querySelector("[name=of]")?.value;
};
let aimed = "";
document.addEventListener("click", (event) => {
  const button = event.target.closest("button"), what = button && aim(button);
  if (event.detail < 2) aimed = what;
  if (!button) return;
  if (button.hasAttribute("aria-busy") || aimed !== what) {
    event.preventDefault();
    event.stopPropagation();
  } else if (button.matches("#train, #prepare, #speak, button.act:is(.primary, .stop):not([data-confirm])")) {
    button.setAttribute("aria-busy", "true");
    setTimeout(() => button.removeAttribute("aria-busy"), PRESSED_MS);
  }
}, true);

// One player for short sounds, such as a clip, the reference of a voice, a sample or a new version of a sentence.
const hearing = new Audio();
const markHeard = () => {
  for (const button of document.querySelectorAll("[data-hear]")) {
    button.toggleAttribute("data-playing", !hearing.paused && hearing.src.endsWith(button.dataset.hear));
  }
};
for (const change of ["play", "pause", "ended"]) hearing.addEventListener(change, markHeard);
hearing.addEventListener("error", () => hearing.pause());
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-hear]");
  if (!button) return;
  const isSame = hearing.src.endsWith(button.dataset.hear) && !hearing.paused;
  hearing.pause();
  if (isSame) return;
  hearing.src = button.dataset.hear;
  hearing.play().catch(() => {});  // the mark on the button tells
});

// A notification when the training of the open project ends; the browser asks for permission at the first start.
let before = "";
setInterval(() => {
  const step = document.querySelector("#steps [data-open=training-tab]");
  const now = `${document.querySelector("#project input")?.value}: ${step?.className}`;
  if (before === now.replace(/: .*/, ": active") && before !== now && window.Notification?.permission === "granted") {
    new Notification(document.title, {body: `${step.querySelector("b").textContent}: ${step.dataset.status}`});
  }
  before = now;
}, 2000);
document.addEventListener("click", (event) => {
  if (event.target.closest("#train") && window.Notification?.permission === "default") Notification.requestPermission();
});

// Asks before something is deleted. Resolves to whether the answer is yes.
window.ask = (question, yes, no) => new Promise((resolve) => {
  const dialog = document.createElement("dialog");
  dialog.id = "question";
  dialog.innerHTML = `<p></p><form method="dialog">
    <button class="act stop" id="confirm" value="confirm"></button><button class="act" id="cancel" autofocus></button></form>`;
  for (const [part, text] of [["p", question], ["#confirm", yes], ["#cancel", no]]) dialog.querySelector(part).textContent = text;
  dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "confirm"); });
  document.querySelector(".gradio-container").append(dialog);
  dialog.showModal();
});

// Marks the panels that show the open project. The others still show another one, or nothing yet.
window.openProject = (name = document.body.dataset.project) => {
  document.body.dataset.project = name ?? "";
  for (const panel of document.querySelectorAll("[data-project]:not(body)")) panel.classList.toggle("fresh", Boolean(name) && panel.dataset.project === name);
};

// A panel: its buttons (data-act) send the named fields to the server. Gradio changes only what differs in the HTML, so
// what is typed stays; a field with data-key starts anew when it is about something else. Its base is the stored text that it
// is edited on: if another tab stores one meanwhile, the server sees by it that there are two.
window.panel = (element, trigger, watch, props) => {
  const words = (text) => text?.trim().split(/\s+/).join(" ");
  let unanswered = "";  // what was sent last: the same is not sent again before its answer, which may get lost
  const send = async (control) => {
    const {confirm, cancel, key, ...data} = control.dataset;
    if (confirm && !await ask(confirm, control.textContent, cancel)) return;
    const fields = [...element.querySelectorAll("[name]")];
    const values = fields.map((field) => [field.name, field.type === "checkbox" ? field.checked : field.value]);
    const bases = fields.filter((field) => field.dataset.key).map((field) => [`${field.name}Base`, field.base]);
    const sent = {...Object.fromEntries([...values, ...bases]), ...element.panelData?.(), ...data};
    const press = JSON.stringify(sent);
    if (press === unanswered) return;
    unanswered = press;
    setTimeout(() => { unanswered = ""; }, PRESSED_MS);
    for (const field of fields) Object.assign(field, {isTyped: false, sent: field.value});
    trigger("click", sent);
  };
  let waiting;
  element.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-act]"), details = event.target.closest("summary")?.parentElement;
    if (details?.id) opened[details.open ? "delete" : "add"](details.id);  // at once: an answer may close them before they toggle
    if (button) send(button);
  });
  element.addEventListener("change", (event) => { if (event.target.matches("select[data-act]")) send(event.target); });
  element.addEventListener("input", (event) => {
    clearTimeout(waiting);
    event.target.isTyped = true;
    if (event.target.matches(":is(input, textarea)[data-act]")) waiting = setTimeout(send, 250, event.target);
  });
  element.addEventListener("toggle", ({target}) => { if (target.id && target.open) opened.add(target.id); }, true);  // by a script
  let newest = 0, latest = "";  // the turn of what is shown
  const update = () => {
    const [, turn = 0, project = ""] = /<!--(\d+) (\S*)-->$/.exec(props.value) ?? [];
    if (turn < newest) {  // an answer to a tick that was on its way while a later click was answered
      props.value = latest;  // rendered before the next microtask
      queueMicrotask(update);
      return;
    }
    if (turn > newest) unanswered = "";
    [newest, latest] = [Number(turn), props.value];
    element.dataset.project = decodeURIComponent(project);
    for (const field of element.querySelectorAll("[data-key]")) {  // data-value: gradio itself puts a new value into the field
      const stored = field.dataset.value ?? field.getAttribute("value") ?? "", isOther = field.lastKey !== field.dataset.key;
      const isKept = field.dataset.keep && field.isTyped;  // typed while an earlier answer was on its way
      const isUntouched = stored !== field.base && field.value === field.base;
      if (isOther ? !isKept : isUntouched) field.value = field.base = stored;
      else if (isOther || words(field.sent) === words(stored)) field.base = stored;  // it is what was saved here
      field.lastKey = field.dataset.key;
    }
    for (const button of element.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
    for (const id of opened) element.querySelector(`#${id}`)?.setAttribute("open", "");
    markInvalid();
    markHeard();
    openProject();
    element.refreshed?.();
  };
  update();
  watch("value", update);
};

// Gradio reloads the page when a request fails; a page that was still loading when the program ended sends none.
setInterval(() => fetch("gradio_api/app_id").then((answer) => answer.json()).then(({app_id}) => {
  if (app_id && app_id !== gradio_config.app_id) location.reload();
}, () => {}), 10000);
