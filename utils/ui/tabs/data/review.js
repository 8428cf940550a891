// The list: boxes that are ticked until their clip is out of sight; a clip that is played is opened, too.
const ticked = new Set();
element.panelData = () => ({ ticked: [...ticked] });
const boxes = () => [...element.querySelectorAll('input[data-tick]')];
let place = 0, placed = '';  // of the clip that was opened; kept when an edit moves it or takes it out of the list
let unseen = '';  // the clip that was opened by hand; on a phone it is brought into sight once it is there
const rows = () => [...element.querySelectorAll('#clips tbody tr:has([data-clip])')];
element.addEventListener('click', event => {
  const row = event.target.closest('#clips tbody tr');
  if (event.target.closest('[data-hear]')) {
    row?.querySelector('[data-clip]')?.click();  // an example of the list that can be repaired has none
  } else if (event.target.closest('[data-clip]')) {
    placed = '';
    element.querySelector('tr.chosen')?.classList.remove('chosen');
    row.classList.add('chosen');  // at once; the answer brings the same
    if (event.isTrusted) unseen = event.target.closest('[data-clip]').dataset.clip;  // not through a key, nor to hear it
  } else if (event.target.closest('[data-part]')) {
    playPart();
  } else if (event.detail && event.target.closest('#clip-editor button[data-act]')) {
    element.querySelector('#clip-editor').focus();  // so that the keys below act, and no text takes them
  }
});
element.addEventListener('change', ({ target }) => {
  if (target.matches('[data-all]')) boxes().forEach(box => { box.checked = target.checked; });
  for (const box of boxes()) ticked[box.checked ? 'add' : 'delete'](box.dataset.tick);
});

// The first press on Split or Trim shows where it would cut, the next one cuts.
element.addEventListener('click', event => {
  const places = element.querySelector('#clip-cut');
  if (!event.target.closest('[data-act=split], [data-act=trim]') || places.open) return;
  event.stopPropagation();
  places.open = true;
}, true);

// The editor: drag an end of the selection, double-click to set the split, click to play from there.
const wave = () => element.querySelector('.wave');
const sound = () => element.querySelector('#clip-editor audio');
const field = name => element.querySelector(`[name=${name}]`);
const share = event => {
  const box = wave().getBoundingClientRect();
  return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
};
const draw = () => {
  if (!wave()) return;
  const seconds = Number(sound().dataset.seconds);
  for (const name of ['start', 'end', 'at']) {
    if (field(name)) wave().style.setProperty(`--${name}`, field(name).value / seconds);
  }
};
const mark = (name, event) => {
  if (!field(name)) return;
  field(name).value = (share(event) * Number(sound().dataset.seconds)).toFixed(2);
  element.querySelector('#clip-cut').open = true;
  draw();
};
const playPart = () => {
  const audio = sound(), end = Number(field('end').value);
  const stop = () => {
    if (audio.currentTime >= end) { audio.pause(); audio.removeEventListener('timeupdate', stop); }
  };
  audio.currentTime = Number(field('start').value);
  audio.addEventListener('timeupdate', stop);
  audio.play();
};
element.addEventListener('input', ({ target }) => {
  if (target.closest('#clips')) placed = '';  // another list
  draw();
});
element.addEventListener('timeupdate', ({ target }) => {  // does not bubble, so it is caught on its way down
  if (wave() && target.duration) wave().style.setProperty('--now', target.currentTime / target.duration);
}, true);
let dragged = null;
element.addEventListener('pointerdown', event => {
  if (!event.target.closest('.wave') || !field('start')) return;
  dragged = ['start', 'end'].find(name => {
    const at = field(name).value / Number(sound().dataset.seconds);
    return Math.abs(share(event) - at) * wave().clientWidth < 10;
  });
  if (dragged) wave().setPointerCapture(event.pointerId);
});
element.addEventListener('pointermove', event => { if (dragged && wave()) mark(dragged, event); });
element.addEventListener('pointerup', event => {
  if (!dragged && sound()?.duration && event.target.closest('.wave')) sound().currentTime = share(event) * sound().duration;
  dragged = null;
});
element.addEventListener('dblclick', event => { if (event.target.closest('.wave')) mark('at', event); });

// Space plays, Enter approves, Delete excludes, S splits, T trims, Ctrl-Z undoes, and the arrows choose another clip,
// wherever the focus is but in text; a button or link that has it is pressed by Space and Enter.
window.reviewKeys?.abort();  // of a list that was shown before
window.reviewKeys = new AbortController();
document.addEventListener('keydown', event => {
  const control = event.target.closest('input, textarea, select, [role=combobox], button, summary, a[href]');
  const isText = control?.matches('input:not([type=checkbox]), textarea, select, [role=combobox]');
  const isPressed = control && !control.matches('#clips td button') && [' ', 'Enter'].includes(event.key);
  if (!element.checkVisibility() || document.querySelector('dialog') || isText || isPressed) return;
  const isShortcut = event.ctrlKey || event.metaKey, key = event.key.toLowerCase();
  const press = action => element.querySelector(`[data-act=${action}]`)?.click();
  const choose = step => element.querySelectorAll('[data-clip]')[step]?.click();
  const isInPlace = rows()[place]?.classList.contains('chosen');
  const actions = isShortcut ? { z: () => press('undo') } : sound() ? {
    ' ': () => (sound().paused ? sound().play() : sound().pause()),
    enter: () => press('approve'),
    delete: () => press('exclude'),
    backspace: () => press('exclude'),
    s: () => press('split'),
    t: () => press('trim'),
    arrowdown: () => choose(isInPlace ? place + 1 : place),
    arrowup: () => choose(place - 1),
  } : {};
  if (event.altKey || !actions[key]) return;
  event.preventDefault();
  if (!event.repeat || isShortcut || key.startsWith('arrow')) actions[key]();  // a held key decides once
}, { signal: window.reviewKeys.signal });

element.refreshed = () => {
  const shown = boxes();
  for (const name of ticked) if (!shown.some(box => box.dataset.tick === name)) ticked.delete(name);
  for (const box of shown) box.checked = ticked.has(box.dataset.tick);
  const open = rows().findIndex(row => row.classList.contains('chosen')), name = shown[open]?.dataset.tick;
  if (name && name !== placed) [place, placed] = [open, name];
  if (unseen && field('of')?.value === unseen) {
    const editor = element.querySelector('#clip-editor');
    if (innerWidth <= 760) { editor.focus(); editor.scrollIntoView(); }
    unseen = '';
  }
  draw();
};
element.refreshed();
