// Listens on the element itself, because its content is replaced.
const player = new Audio();
let playing = null;
const quiet = () => { if (playing) { playing.textContent = '▶'; playing = null; } };
player.addEventListener('ended', quiet);
const select = row => {
  element.querySelector('tr.chosen')?.classList.remove('chosen');
  row.classList.add('chosen');  // at once; the answer brings the same
  trigger('select', {clip: row.querySelector('[data-clip]').dataset.clip});
};
element.addEventListener('click', event => {
  const play = event.target.closest('[data-play]');
  const choose = event.target.closest('[data-clip]');
  const all = event.target.closest('[data-all]');
  if (play) {
    const same = play === playing;
    player.pause(); quiet();
    if (!same) { player.src = play.dataset.play; player.play().then(() => {}, quiet);
      playing = play; play.textContent = '■'; }
    select(play.closest('tr'));
  } else if (choose) {
    select(choose.closest('tr'));
  } else if (all) {
    element.querySelectorAll('input[data-tick]').forEach(box => { box.checked = all.checked; });
  }
});
// Space plays, Enter approves, Delete excludes, Ctrl-Z undoes, and the arrows choose another clip.
window.reviewKeys?.abort();  // of a table that was shown before
window.reviewKeys = new AbortController();
document.addEventListener('keydown', event => {
  const view = document.querySelector('#clip-view audio');
  const control = event.target.closest('input, textarea, [role=combobox], button');
  if (!view?.checkVisibility() || (control && !(control.matches('button') && element.contains(control)))) return;
  const click = id => document.querySelector(id)?.click();
  const choose = step => {
    const clips = [...element.querySelectorAll('[data-clip]')];
    const now = clips.findIndex(clip => clip.closest('tr').classList.contains('chosen'));
    clips[now + step]?.click();
  };
  const actions = {
    ' ': () => (view.paused ? view.play() : view.pause()),
    Enter: () => click('#approve'),
    Delete: () => click('#exclude'),
    Backspace: () => click('#exclude'),
    ArrowDown: () => choose(1),
    ArrowUp: () => choose(-1),
    ...(event.ctrlKey || event.metaKey ? { z: () => click('#undo') } : {}),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}, { signal: window.reviewKeys.signal });
