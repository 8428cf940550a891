// Listens on the element itself, because its content is replaced.
const player = new Audio();
let playing = null;
const quiet = () => { if (playing) { playing.textContent = '▶'; playing = null; } };
player.addEventListener('ended', quiet);
element.addEventListener('click', event => {
  const play = event.target.closest('[data-play]');
  const choose = event.target.closest('[data-clip]');
  const all = event.target.closest('[data-all]');
  if (play) {
    const same = play === playing;
    player.pause(); quiet();
    if (!same) { player.src = play.dataset.play; player.play().then(() => {}, quiet);
      playing = play; play.textContent = '■'; }
  } else if (choose) {
    trigger('select', {clip: choose.dataset.clip});
  } else if (all) {
    element.querySelectorAll('input[data-tick]').forEach(box => { box.checked = all.checked; });
  }
});
