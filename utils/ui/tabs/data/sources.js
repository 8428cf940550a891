// The drop zone also takes folders, of which gradio sees no files, and links; files and links may also be pasted.
const zone = () => document.getElementById("upload-files");
const filesOf = async (entry) => {
  if (entry.isFile) return [Object.assign(await new Promise((done, fail) => entry.file(done, fail)), { place: entry.fullPath })];
  const reader = entry.createReader(), content = [];
  for (let part; (part = await new Promise((done, fail) => reader.readEntries(done, fail))).length;) content.push(...part);
  return (await Promise.all(content.map(filesOf))).flat();
};
const drop = (files) => {
  const suffixes = zone().querySelector("input[type=file]").accept.split(",").map((suffix) => suffix.trim());
  const usable = files.filter(({ name }) => suffixes.some((suffix) => name.toLowerCase().endsWith(suffix)));
  const isUnique = new Set(usable.map(({ name }) => name)).size === usable.length;
  const dataTransfer = new DataTransfer();
  for (const file of usable) dataTransfer.items.add(isUnique ? file : new File([file], file.place.slice(1).replaceAll("/", "-")));
  zone().querySelector("button").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
};
const receive = async (event, transfer) => {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  const text = transfer.getData("text/uri-list") || transfer.getData("text/plain");
  const links = text.split(/\s+/).filter((word) => /^(https?|hf):/.test(word));
  if (entries.some((entry) => entry.isDirectory)) {
    event.preventDefault();
    event.stopPropagation();
    drop((await Promise.all(entries.map(filesOf))).flat());
  } else if (event.type === "paste" && transfer.files.length) drop([...transfer.files]);
  else if (links.length) {
    element.querySelector("[name=link]").value = links.join(" | ");
    element.querySelector("[data-act=add]").click();
  }
};
window.dropEvents?.abort();  // of a zone that was shown before
window.dropEvents = new AbortController();
const { signal } = window.dropEvents;
document.addEventListener("drop", (event) => {
  if (zone()?.contains(event.target)) receive(event, event.dataTransfer);
}, { capture: true, signal });
document.addEventListener("paste", (event) => {
  if (zone()?.checkVisibility() && !event.target.closest("input, textarea")) receive(event, event.clipboardData);
}, { signal });
