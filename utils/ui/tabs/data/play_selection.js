(start, end) => {
  const sound = document.querySelector('#clip-view audio');
  if (!sound) return;
  const stop = () => {
    if (sound.currentTime >= end) { sound.pause(); sound.removeEventListener('timeupdate', stop); }
  };
  sound.currentTime = start;
  sound.addEventListener('timeupdate', stop);
  sound.play();
}
