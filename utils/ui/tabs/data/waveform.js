// Drag an end of the selection to trim, double-click to set the split, click to play from there.
const clip = () => ({ wave: element.querySelector('.wave'), sound: element.querySelector('audio') });
const share = (wave, event) => {
  const box = wave.getBoundingClientRect();
  return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
};
const mark = (name, seconds) => {
  const input = document.querySelector(`#mark-${name} input[type=number]`);
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, seconds.toFixed(2));
  input.dispatchEvent(new Event('input', { bubbles: true }));
};
let dragged = null;
// Time updates do not bubble, so they are caught on their way down.
element.addEventListener('timeupdate', event => {
  const { wave } = clip();
  const sound = event.target;
  if (wave && sound.duration) wave.style.setProperty('--at', sound.currentTime / sound.duration);
}, true);
element.addEventListener('pointerdown', event => {
  const wave = event.target.closest('.wave');
  if (!wave) return;
  const near = ['start', 'end'].find(name => {
    const at = Number(getComputedStyle(wave).getPropertyValue(`--${name}`));
    return Math.abs(share(wave, event) - at) * wave.clientWidth < 10;
  });
  dragged = near ?? null;
  if (near) wave.setPointerCapture(event.pointerId);
});
element.addEventListener('pointermove', event => {
  const { wave, sound } = clip();
  if (dragged && wave) mark(dragged, share(wave, event) * Number(sound.dataset.seconds));
});
element.addEventListener('pointerup', event => {
  const { wave, sound } = clip();
  if (!dragged && sound?.duration && event.target.closest('.wave')) {
    sound.currentTime = share(wave, event) * sound.duration;
  }
  dragged = null;
});
element.addEventListener('dblclick', event => {
  const { wave, sound } = clip();
  if (wave && event.target.closest('.wave')) mark('at', share(wave, event) * Number(sound.dataset.seconds));
});
