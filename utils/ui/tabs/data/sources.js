// The drop zone also takes folders, of which gradio sees no files, and links; files and links may also be pasted.
const zone = () => document.getElementById("upload-files");
const filesOf = async (entry) => {
  if (entry.isFile) return [Object.assign(await new Promise((done, fail) => entry.file(done, fail)), { place: entry.fullPath })];
  const reader = entry.createReader(), content = [];
  for (let part; (part = await new Promise((done, fail) => reader.readEntries(done, fail))).length;) content.push(...part);
  return (await Promise.all(content.map(filesOf))).flat();
};
// A .tar keeps the places and the names without a suffix, such as "text" of Kaldi.
const encoder = new TextEncoder();
const header = (name, size, kind) => {
  const block = new Uint8Array(512), put = (at, text) => block.set(encoder.encode(text), at);
  put(0, name);
  put(100, "0000644");
  put(124, size.toString(8).padStart(11, "0"));
  put(148, `        ${kind}`);
  put(257, "ustar  ");
  put(148, `${block.reduce((sum, byte) => sum + byte).toString(8).padStart(6, "0")}\0`);
  return block;
};
const padding = (size) => new Uint8Array((512 - (size % 512)) % 512);
const pack = (files) => {
  const parts = files.flatMap((file) => {
    const place = encoder.encode(`${file.place.slice(1)}\0`);
    const named = [header("././@LongLink", place.length, "L"), place, padding(place.length)];
    return [...named, header("file", file.size, "0"), file, padding(file.size)];
  });
  const [top, ...below] = files[0].place.slice(1).split("/");
  return new File([...parts, new Uint8Array(1024)], `${below.length ? top : "files"}.tar`);
};
const isAccepted = ({ name }) => SUFFIXES.some((suffix) => name.toLowerCase().endsWith(suffix));
const isStrange = (file) => !isAccepted(file) && !file.type.startsWith("image/") && !file.name.startsWith(".");
const drop = (files) => {
  const usable = files.filter(isAccepted);
  const isUnique = new Set(usable.map(({ name }) => name)).size === usable.length;
  const dataTransfer = new DataTransfer();
  if (files.some(isStrange) || (!isUnique && usable.some(({ name }) => /\.(csv|tsv|jsonl?|list)$/i.test(name)))) {
    dataTransfer.items.add(pack(files));
  } else {
    for (const file of usable) dataTransfer.items.add(isUnique ? file : new File([file], file.place.slice(1).replaceAll("/", "-")));
  }
  zone().querySelector("button").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
};
const refuse = (event, files) => {
  const large = [...files].find(({ size }) => size > MAX_SIZE);
  if (!large) return false;
  event.preventDefault();
  event.stopPropagation();
  trigger("click", { act: "too_large", name: large.name });
  return true;
};
const receive = async (event, transfer) => {
  if (refuse(event, transfer.files)) return;
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  const text = transfer.getData("text/uri-list") || transfer.getData("text/plain");
  const links = text.split(/\s+/).filter((word) => /^(https?|hf):/.test(word));
  const isPasted = event.type === "paste" && transfer.files.length;
  if (isPasted || entries.some((entry) => entry.isDirectory) || [...transfer.files].some(isStrange)) {
    event.preventDefault();
    event.stopPropagation();
    drop((await Promise.all(entries.map(filesOf))).flat());
  } else if (links.length) {
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
document.addEventListener("change", (event) => {
  if (zone()?.contains(event.target) && event.target.files) refuse(event, event.target.files);
}, { capture: true, signal });
document.addEventListener("paste", (event) => {
  if (zone()?.checkVisibility() && !event.target.closest("input, textarea")) receive(event, event.clipboardData);
}, { signal });
