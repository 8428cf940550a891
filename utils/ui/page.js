// Translates gradio's own words and corrects names for screen readers: a label that differs from the text on a button,
// and one on an element that may have none, mislead them; axe-core counts both as serious.
(() => {
  const words = window.gradioWords;
  const back = Object.fromEntries(Object.entries(words).map(([english, amharic]) => [amharic, english]));
  let waiting = false;
  const translate = (box) => {
    const known = document.documentElement.lang === "am" ? words : back;
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const match = known[walker.currentNode.data.trim()];
      if (match) walker.currentNode.data = ` ${match} `;
    }
  };
  const patch = () => {
    waiting = false;
    for (const box of document.querySelectorAll("button.upload-container")) {
      box.removeAttribute("aria-label");
      box.removeAttribute("aria-dropeffect");
      translate(box);
    }
    document.querySelectorAll(".toast-title").forEach(translate);
    const invalid = new Set([...document.querySelectorAll("[data-setting]")].map((item) => item.dataset.setting));
    for (const setting of document.querySelectorAll("[id^=training-].block")) {
      setting.classList.toggle("invalid", invalid.has(setting.id.slice("training-".length)));
    }
    for (const empty of document.querySelectorAll("div.empty[aria-label]")) empty.removeAttribute("aria-label");
    for (const mark of document.querySelectorAll("svg [role='graphics-symbol']:not([aria-label])")) {  // of charts
      mark.removeAttribute("role");
    }
    for (const head of document.querySelectorAll(".toast-header[role]")) {  // its close button stays one
      head.removeAttribute("role");
      head.removeAttribute("tabindex");
    }
  };
  const soon = () => { if (!waiting) { waiting = true; setTimeout(patch, 250); } };
  const changes = {childList: true, subtree: true, attributeFilter: ["lang", "role"]};
  new MutationObserver(soon).observe(document.documentElement, changes);
  soon();
})();

// Buttons in HTML that open a tab: those of the status strip, and "Next".
document.addEventListener("click", (event) => {
  const step = event.target.closest("[data-open]");
  if (step) document.getElementById(`${step.dataset.open}-button`)?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.getElementById("close-system")?.click();
});

// A notification when the training of the open project ends; the browser asks for permission at the first start.
(() => {
  let before = "";
  setInterval(() => {
    const step = document.querySelector(".strip [data-open=training-tab]");
    const now = `${document.querySelector("#project input")?.value}: ${step?.className}`;
    if (before === now.replace(/: .*/, ": active") && before !== now && window.Notification?.permission === "granted") {
      new Notification(document.title, {body: step.textContent});
    }
    before = now;
  }, 2000);
  document.addEventListener("click", (event) => {
    if (event.target.closest("#train") && window.Notification?.permission === "default") Notification.requestPermission();
  });
})();
