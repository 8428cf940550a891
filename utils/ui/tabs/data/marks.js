(start, end, split) => {
  const wave = document.querySelector('#clip-view .wave');
  if (wave) {
    const seconds = Number(wave.parentElement.querySelector('[data-seconds]').dataset.seconds);
    wave.style.setProperty('--start', start / seconds);
    wave.style.setProperty('--end', end / seconds);
    wave.style.setProperty('--split', split > 0 && split < seconds ? split / seconds : -1);
  }
}
