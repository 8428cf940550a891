// Keeps the inputs of a settings form and its value, a dict of the settings by name, the same.
const inputs = () => [...element.querySelectorAll("[name]")];
const read = (input) =>
  input.type === "checkbox" ? input.checked : input.type !== "number" ? input.value : input.value === "" ? null : Number(input.value);
const fallback = (input) => ("default" in input.dataset ? JSON.parse(input.dataset.default) : props.value[input.name]);

let edits = 0;
let edited = {};  // the number and the value of the last edit of each field

function edit(values) {
  edits += 1;
  for (const [name, value] of Object.entries(values)) edited[name] = [edits, value];
  props.value = { ...props.value, ...values, edits };
  show();
}

function keepLaterEdits() {
  if (props.value.edits === undefined) edited = {};  // all was replaced on purpose
  const later = Object.entries(edited).filter(([, [number]]) => number > props.value.edits);
  if (later.length) props.value = { ...props.value, ...Object.fromEntries(later.map(([name, [, value]]) => [name, value])), edits };
}

function show() {
  keepLaterEdits();
  for (const input of inputs()) {
    const value = props.value[input.name];
    if (input.type === "checkbox") input.checked = Boolean(value);
    else if (read(input) !== value) {  // else somebody may be typing
      if (input.tagName === "SELECT" && ![...input.options].some((option) => option.value === value)) input.add(new Option(value));
      input.value = value ?? "";
    }
    const slider = element.querySelector(`[data-slider="${input.name}"]`);
    if (slider) slider.value = slider.nextElementSibling.value = input.value;
    const setting = input.closest(".setting"), effect = setting.querySelector("[data-effect]");
    setting.classList.toggle("changed", props.value[input.name] !== fallback(input));
    const html = props.effects?.[input.name] ?? "";
    if (effect.shown !== html || !effect.innerHTML) effect.innerHTML = effect.shown = html;
  }
  markInvalid();
}

element.addEventListener("input", ({ target }) => {
  if (target.type === "search") {
    const wanted = target.value.trim().toLowerCase();
    for (const setting of element.querySelectorAll(".sheet .setting")) {
      setting.hidden = !setting.textContent.toLowerCase().includes(wanted);
    }
    for (const group of element.querySelectorAll(".sheet section")) {
      group.hidden = !group.querySelector(".setting:not([hidden])");
    }
    return;
  }
  const input = target.dataset.slider ? element.querySelector(`[name="${target.dataset.slider}"]`) : target;
  if (input !== target) input.value = target.value;
  edit({ [input.name]: read(input) });
});
element.addEventListener("click", ({ target }) => {
  const { reset, random, close } = target.dataset;
  if (close !== undefined) element.closest("[role=tabpanel]").querySelector("[id$=-advanced] input").click();
  if (random) edit({ [random]: Math.floor(Math.random() * 2 ** 32) });
  else if (reset !== undefined) edit(Object.fromEntries(inputs().map((input) => [input.name, fallback(input)])));
});
watch(["value", "effects"], show);
const changeLanguage = () => {
  if (!element.isConnected) return document.removeEventListener("language", changeLanguage);
  props.language = document.documentElement.lang;  // any property renders the template again
  setTimeout(show);
};
document.addEventListener("language", changeLanguage);
show();
