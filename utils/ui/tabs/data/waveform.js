// Time updates do not bubble, so they are caught on their way down.
element.addEventListener('timeupdate', event => {
  const wave = element.querySelector('.wave');
  const sound = event.target;
  if (wave && sound.duration) {
    wave.style.setProperty('--at', sound.currentTime / sound.duration);
  }
}, true);
element.addEventListener('click', event => {
  const wave = event.target.closest('.wave');
  const sound = element.querySelector('audio');
  if (wave && sound && sound.duration) {
    const box = wave.getBoundingClientRect();
    sound.currentTime = (event.clientX - box.left) / box.width * sound.duration;
  }
});
