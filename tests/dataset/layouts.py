"""Forty common layouts of speech with text as miniatures: the same three sentences, each as other programs store it."""

import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import soundfile
from pyarrow import ipc, parquet

TEXTS = {"s1": "ሰላም ለሁላችሁም ዛሬ ጥሩ ቀን ነው", "s2": "እናቴ ገበያ ሄዳ ቲማቲም ገዛች", "s3": "ልጆቹ በትምህርት ቤት ይማራሉ"}
SPANS = {"s1": (0.5, 2.0), "s2": (2.5, 4.0), "s3": (4.5, 6.0)}  # in one long recording
LONG = " ".join(TEXTS.values())

Build = Callable[[Path], None]


class Layout(NamedTuple):
    """A layout, and what a scan of it must find."""

    name: str
    build: Build
    expected: Mapping[str, str]  # text by recording
    is_timed: bool = False
    speakers: frozenset[str] = frozenset({"speaker"})
    problems: tuple[str, ...] = ()  # what must be reported, in order


LAYOUTS: list[Layout] = []


def layout(
    expected: Mapping[str, str] | None = None,
    *,
    is_timed: bool = False,
    speakers: Iterable[str] = ("speaker",),
    problems: tuple[str, ...] = (),
) -> Callable[[Build], Build]:
    def add(build: Build) -> Build:
        found = TEXTS if expected is None else expected
        LAYOUTS.append(Layout(build.__name__, build, found, is_timed, frozenset(speakers), problems))
        return build

    return add


def sound(name: str, seconds: float = 1.5) -> bytes:
    """Return a tone that differs with the name."""
    file = io.BytesIO()
    pitch = 100 + sum(map(ord, name)) % 400
    times = np.arange(round(8000 * seconds)) / 8000
    samples = np.sin(times * 2 * np.pi * pitch).astype(np.float32) * 0.2
    if seconds > 6:  # speech only where the sentences are
        samples *= sum((start <= times) & (times < end) for start, end in SPANS.values())
    soundfile.write(file, samples, 8000, format="WAV")
    return file.getvalue()


def audio(folder: Path, name: str, seconds: float = 1.5) -> None:
    """Write a recording; whatever its suffix says, the decoder looks inside."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sound(path.stem, seconds))


def clips(folder: Path, pattern: str = "{}.wav") -> None:
    for name in TEXTS:
        audio(folder, pattern.format(name))


def write(folder: Path, name: str, text: str | Iterable[str]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else "".join(f"{line}\n" for line in text), encoding="utf-8")


def lines(pattern: str) -> list[str]:
    spans = {name: {"start": start, "end": end, "length": end - start} for name, (start, end) in SPANS.items()}
    return [pattern.format(name=name, text=text, **spans[name]) for name, text in TEXTS.items()]


def rows(**columns: str) -> list[dict[str, object]]:
    spans = {name: {"start": start, "length": end - start} for name, (start, end) in SPANS.items()}
    return [
        {key: spans[n][value] if value in spans[n] else value.format(name=n, text=t) for key, value in columns.items()}
        for n, t in TEXTS.items()
    ]


def srt(clock: str = ",") -> str:
    stamp = "00:00:{:06.3f}"
    parts = (
        f"{number}\n{stamp.format(start)} --> {stamp.format(end)}\n{TEXTS[name]}\n"
        for number, (name, (start, end)) in enumerate(SPANS.items(), start=1)
    )
    return "\n".join(parts).replace(".", clock)


@layout(speakers={"sp_s1", "sp_s2", "sp_s3"})
def kaldi(folder: Path) -> None:
    clips(folder, "wavs/{}.wav")
    write(folder, "data/train/text", lines("{name} {text}"))
    write(folder, "data/train/wav.scp", lines("{name} /home/somebody/wavs/{name}.wav"))
    write(folder, "data/train/utt2spk", lines("{name} sp_{name}"))
    write(folder, "data/train/spk2utt", lines("sp_{name} {name}"))


@layout({"meeting": LONG}, is_timed=True, speakers={"sp_s1"})
def kaldi_segments(folder: Path) -> None:
    audio(folder, "meeting.flac", 8)
    write(folder, "text", lines("{name} {text}"))
    write(folder, "wav.scp", ["rec flac -c -d -s meeting.flac |"])
    write(folder, "segments", lines("{name} rec {start} {end}"))
    write(folder, "utt2spk", lines("{name} sp_{name}"))


@layout(speakers={"spk"})
def alffa(folder: Path) -> None:
    clips(folder, "data/train/wav/{}.wav")
    write(folder, "data/train/text", lines("{name} {text}"))
    write(folder, "data/train/utt2spk", lines("{name} spk"))
    write(folder, "data/train/wav.scp", lines("{name} {name}.wav"))
    write(folder, "README", "ALFFA")


@layout()
def fleurs(folder: Path) -> None:
    pack_tar(folder / "data/am_et/audio/train.tar.gz", {f"train/{name}.wav": sound(name) for name in TEXTS})
    write(folder, "data/am_et/train.tsv", lines("7\t{name}.wav\t{text}\t{text}\tሰ ላ ም |\t16000\tFEMALE"))


@layout({"84-1-s1": TEXTS["s1"], "84-1-s2": TEXTS["s2"], "84-1-s3": TEXTS["s3"]}, speakers={"84"})
def librispeech(folder: Path) -> None:
    clips(folder, "84/1/84-1-{}.flac")
    write(folder, "84/1/84-1.trans.txt", lines("84-1-{name} {text}"))
    write(folder, "SPEAKERS.TXT", "84 | F | train | 25.0 | Somebody")


@layout({"84_1_s1": TEXTS["s1"], "84_1_s2": TEXTS["s2"], "84_1_s3": TEXTS["s3"]}, speakers={"84"})
def libritts(folder: Path) -> None:
    clips(folder, "84/1/84_1_{}.wav")
    for name, text in TEXTS.items():
        write(folder, f"84/1/84_1_{name}.normalized.txt", text)
        write(folder, f"84/1/84_1_{name}.original.txt", f"«{text}»")


@layout({f"p225_{name}_mic1": text for name, text in TEXTS.items()}, speakers={"p225"})
def vctk(folder: Path) -> None:
    clips(folder, "wav48/p225/p225_{}_mic1.flac")
    clips(folder, "wav48/p225/p225_{}_mic2.flac")
    for name, text in TEXTS.items():
        write(folder, f"txt/p225/p225_{name}.txt", text)
    write(folder, "speaker-info.txt", "ID AGE GENDER\np225 23 F")


@layout({f"p226_{name}": text for name, text in TEXTS.items()}, speakers={"p226"})
def vctk_before_version_0_91(folder: Path) -> None:
    clips(folder, "wav48/p226/p226_{}.wav")
    for name, text in TEXTS.items():
        write(folder, f"txt/p226/p226_{name}.txt", text)


@layout()
def openslr_line_index(folder: Path) -> None:
    clips(folder)
    write(folder, "line_index.tsv", lines("{name}\t{text}"))


@layout(speakers={"almaz"})
def gpt_sovits(folder: Path) -> None:
    clips(folder, "slicer/{}.wav")
    write(folder, "almaz.list", lines("slicer/{name}.wav|almaz|ZH|{text}"))


@layout()
def festvox(folder: Path) -> None:
    clips(folder, "wav/{}.wav")
    write(folder, "etc/txt.done.data", lines('( {name} "{text}" )'))


@layout({"talk": LONG}, is_timed=True)
def praat_textgrid(folder: Path) -> None:
    audio(folder, "talk.wav", 8)
    write(folder, "talk.TextGrid", textgrid({"sentence": intervals(), "phones": [(0.5, 0.6, "s")]}))


@layout({"talk": LONG}, is_timed=True)
def montreal_aligner(folder: Path) -> None:
    audio(folder, "wav/talk.wav", 8)
    words = []
    for start, end, text in intervals():
        parts = text.split()
        step = (end - start) / len(parts)
        words += [(start + n * step, start + (n + 1) * step, word) for n, word in enumerate(parts)]
    write(folder, "aligned/talk.TextGrid", textgrid({"words": words, "phones": [(0.5, 0.6, "s")]}))


def intervals() -> list[tuple[float, float, str]]:
    return [(start, end, TEXTS[name]) for name, (start, end) in SPANS.items()]


def textgrid(tiers: Mapping[str, list[tuple[float, float, str]]]) -> str:
    size = len(tiers)
    head = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 8\ntiers? <exists>\n'
    body = ""
    for number, (name, marks) in enumerate(tiers.items(), start=1):
        body += f'item [{number}]:\n class = "IntervalTier"\n name = "{name}"\n xmin = 0\n xmax = 8\n'
        body += f' intervals: size = {len(marks) + 1}\n intervals [1]:\n  xmin = 0\n  xmax = 0.5\n  text = ""\n'
        for index, (start, end, text) in enumerate(marks, start=2):
            body += f' intervals [{index}]:\n  xmin = {start}\n  xmax = {end}\n  text = "{text}"\n'
    return f"{head}size = {size}\nitem []:\n{body}"


@layout()
def label_studio(folder: Path) -> None:
    clips(folder, "upload/{}.wav")
    tasks = [
        {
            "id": 1,
            "data": {"audio": f"/data/upload/1/1a2b3c4d-{name}.wav"},
            "annotations": [{"result": [{"type": "textarea", "value": {"text": [text]}, "from_name": "t"}]}],
        }
        for name, text in TEXTS.items()
    ]
    write(folder, "export.json", json.dumps(tasks, ensure_ascii=False))


@layout({"talk": LONG}, is_timed=True)
def whisper_json(folder: Path) -> None:
    audio(folder, "talk.mp3", 8)
    segments = [{"id": n, "start": a, "end": b, "text": f" {t}"} for n, (a, b, t) in enumerate(intervals())]
    write(folder, "talk.json", json.dumps({"text": LONG, "segments": segments, "language": "am"}, ensure_ascii=False))


@layout({"talk": LONG}, is_timed=True)
def whisper_all_formats(folder: Path) -> None:
    whisper_json(folder)
    write(folder, "talk.txt", lines("{text}"))
    write(folder, "talk.srt", srt())
    write(folder, "talk.vtt", f"WEBVTT\n\n{srt('.')}")
    head = ["start\tend\ttext"]
    write(folder, "talk.tsv", head + [f"{int(a * 1000)}\t{int(b * 1000)}\t{t}" for a, b, t in intervals()])


@layout(speakers={"almaz"})
def renamed_columns(folder: Path) -> None:
    clips(folder, "ton/{}.wav")
    write(folder, "liste.csv", ["nr;datei;satz;wer", *lines("7;ton/{name}.wav;{text};almaz")])


@layout({"book": LONG})
def audio_book_epub(folder: Path) -> None:
    audio(folder, "book.m4b", 8)
    epub(folder / "roman.epub", [LONG])


@layout({"book": LONG})
def audio_book_txt(folder: Path) -> None:
    audio(folder, "book.m4b", 8)
    write(folder, "text of the book.txt", lines("{text}"))


@layout({"01": f"አንድ {TEXTS['s1']}", "02": f"ሁለት {TEXTS['s2']}", "03": f"ሦስት {TEXTS['s3']}"})
def audio_book_chapters(folder: Path) -> None:
    for name in ("01", "02", "03"):
        audio(folder, f"{name}.mp3", 3)
    titles = zip(("አንድ", "ሁለት", "ሦስት"), TEXTS.values(), strict=True)
    epub(folder / "book.epub", [f"<h1>{title}</h1><p>{text}</p>" for title, text in titles])


@layout({"9": TEXTS["s1"], "10": TEXTS["s2"], "11": TEXTS["s3"]})
def a_line_for_each_recording(folder: Path) -> None:
    for name in ("9", "10", "11"):
        audio(folder, f"{name}.m4a", 3)
    write(folder, "text.txt", lines("{text}"))


@layout(speakers={"Almaz", "ከበደ"})
def a_folder_for_each_speaker(folder: Path) -> None:
    for speaker, names in {"Almaz": ("s1", "s2"), "ከበደ": ("s3",)}.items():
        for name in names:
            audio(folder, f"{speaker}/{name}.wav")
        write(folder, f"{speaker}/text.txt", [f"{name}.wav {TEXTS[name]}" for name in names])


@layout({"talk": LONG}, is_timed=True, speakers={"SARA"})
def interview(folder: Path) -> None:
    audio(folder, "talk.m4a", 8)
    write(
        folder,
        "talk.srt",
        srt().replace(TEXTS["s1"], f"SARA: {TEXTS['s1']}").replace(TEXTS["s3"], f"ABEBE: {TEXTS['s3']}"),
    )


def epub(path: Path, chapters: list[str]) -> None:
    names = [f"c{number}.xhtml" for number in range(len(chapters))]
    items = "".join(f'<item id="{name}" href="{name}"/>' for name in names)
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    files = {
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="p.opf"/></rootfiles></container>',
        "p.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
        **{name: f"<html><body>{text}</body></html>" for name, text in zip(names, chapters, strict=True)},
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@layout({"talk": LONG}, is_timed=True)
def audacity_labels(folder: Path) -> None:
    audio(folder, "talk.wav", 8)
    write(folder, "labels.txt", lines("{start}\t{end}\t{text}"))


@layout({"talk": LONG}, is_timed=True)
def nemo_offsets(folder: Path) -> None:
    audio(folder, "talk.wav", 8)
    objects = rows(audio_filepath="/data/talk.wav", offset="start", duration="length", text="{text}")
    write(folder, "train_manifest.json", map(dumps, objects))


@layout(speakers={"almaz"})
def index_tts(folder: Path) -> None:
    clips(folder, "audio/{}.wav")
    objects = rows(id="{name}", text="{text}", audio="audio/{name}.wav", speaker="almaz", language="am")
    write(folder, "train.jsonl", (dumps({**row, "duration": 1.5}) for row in objects))


def dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@layout()
def ljspeech(folder: Path) -> None:
    clips(folder, "wavs/{}.wav")
    write(folder, "metadata.csv", lines("{name}|{text}|{text}"))


@layout(speakers={"c1"}, problems=("validated.tsv", "validated.tsv", "1 audio file is not in the list"))
def common_voice(folder: Path) -> None:
    clips(folder, "clips/{}.mp3")
    audio(folder, "clips/s9.mp3")
    head = "client_id\tpath\tsentence\tup_votes"
    write(folder, "validated.tsv", [head, *lines("c1\t{name}.mp3\t{text}\t2")])
    write(folder, "train.tsv", [head, *lines("c1\t{name}.mp3\t{text}\t2")])
    write(folder, "invalidated.tsv", [head, "c1\ts9.mp3\tሌላ ጽሑፍ\t0"])


def features() -> list[dict[str, object]]:
    return [
        {"audio": {"bytes": sound(n), "path": f"{n}.wav"}, "sentence": t, "speaker_id": "7"} for n, t in TEXTS.items()
    ]


@layout({"": ""}, speakers={"7"})
def parquet_table(folder: Path) -> None:
    (folder / "data").mkdir(exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(features()), folder / "data" / "train-00000-of-00001.parquet")


@layout({"": ""}, speakers={"7"})
def save_to_disk(folder: Path) -> None:
    table = pa.Table.from_pylist(features())
    (folder / "train").mkdir(exist_ok=True)
    with ipc.new_stream(folder / "train" / "data-00000-of-00001.arrow", table.schema) as sink:
        sink.write_table(table)
    write(folder, "dataset_dict.json", '{"splits": ["train"]}')
    write(folder, "train/state.json", '{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    write(folder, "train/dataset_info.json", '{"description": "speech"}')


@layout()
def wav_with_txt(folder: Path) -> None:
    clips(folder)
    for name, text in TEXTS.items():
        write(folder, f"{name}.txt", text)


@layout()
def txt_in_another_folder(folder: Path) -> None:
    clips(folder, "wav/{}.wav")
    for name, text in TEXTS.items():
        write(folder, f"txt/{name}.lab", text)


@layout(speakers={"coqui"})
def xtts_finetune_webui(folder: Path) -> None:
    clips(folder, "wavs/{}.wav")
    head, (first, *others) = "audio_file|text|speaker_name", lines("wavs/{name}.wav|{text}|coqui")
    write(folder, "metadata_train.csv", [head, *others])
    write(folder, "metadata_eval.csv", [head, first])
    write(folder, "lang.txt", "am")


@layout({"talk": LONG}, is_timed=True, speakers={"almaz"}, problems=("translation", "comments"))
def elan(folder: Path) -> None:
    audio(folder, "talk.wav", 8)
    slots = "".join(
        f'<TIME_SLOT TIME_SLOT_ID="{n}{side}" TIME_VALUE="{int(time * 1000)}"/>'
        for n, span in SPANS.items()
        for side, time in zip("ab", span, strict=True)
    )
    marks = "".join(
        f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="{n}" TIME_SLOT_REF1="{n}a" TIME_SLOT_REF2="{n}b">'
        f"<ANNOTATION_VALUE>{text}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
        for n, text in TEXTS.items()
    )
    other = (
        '<ANNOTATION><REF_ANNOTATION ANNOTATION_REF="s1"><ANNOTATION_VALUE>hello</ANNOTATION_VALUE></REF_ANNOTATION>'
    )
    write(
        folder,
        "talk.eaf",
        f'<ANNOTATION_DOCUMENT><HEADER><MEDIA_DESCRIPTOR MEDIA_URL="file:///c:/talk.wav"/></HEADER><TIME_ORDER>{slots}'
        f'</TIME_ORDER><TIER TIER_ID="tx" PARTICIPANT="almaz">{marks}</TIER>'
        f'<TIER TIER_ID="translation" PARENT_REF="tx">{other}</ANNOTATION></TIER>'
        f'<TIER TIER_ID="comments">{re.sub("[ሀ-፼]+", "coughs", marks)}</TIER>'
        "</ANNOTATION_DOCUMENT>",
    )


@layout({"film": LONG}, is_timed=True)
def aegisub(folder: Path) -> None:
    audio(folder, "film.mkv", 8)
    events = (f"Dialogue: 0,0:00:0{a:.2f},0:00:0{b:.2f},Default,,0,0,0,,{{\\i1}}{t}" for a, b, t in intervals())
    fields = "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text"
    write(folder, "film.am.ass", ["[Script Info]", "ScriptType: v4.00+", "", "[Events]", fields, *events])


@layout({"film": LONG}, is_timed=True)
def video_with_subtitles(folder: Path) -> None:
    audio(folder, "film.mp4", 8)
    write(folder, "film.am.srt", srt())


@layout({"talk": LONG}, is_timed=True)
def ctm(folder: Path) -> None:
    audio(folder, "talk.wav", 8)
    marks = []
    for start, end, text in intervals():
        step = (end - start) / len(text.split())
        marks += [f"talk 1 {start + n * step:.2f} {step:.2f} {word} 0.99" for n, word in enumerate(text.split())]
    write(folder, "words.ctm", marks)


@layout()
def webdataset(folder: Path) -> None:
    files = {f"{name}.wav": sound(name) for name in TEXTS}
    pack_tar(
        folder / "shard-000000.tar", files | {f"{name}.json": dumps({"text": t}).encode() for name, t in TEXTS.items()}
    )


@layout({f"PTT-2024-{name}": text for name, text in TEXTS.items()})
def voice_messages(folder: Path) -> None:
    for name, suffix in zip(TEXTS, ("opus", "m4a", "amr"), strict=True):
        audio(folder, f"PTT-2024-{name}.{suffix}")
    suffixes = dict(zip(TEXTS, ("opus", "m4a", "amr"), strict=True))
    write(folder, "list.txt", [f"PTT-2024-{name}.{suffixes[name]}: {text}" for name, text in TEXTS.items()])


@layout()
def huggingface_audiofolder(folder: Path) -> None:
    clips(folder, "train/{}.wav")
    write(folder, "train/metadata.jsonl", map(dumps, rows(file_name="{name}.wav", transcription="{text}")))


@layout()
def json_of_texts(folder: Path) -> None:
    clips(folder)
    write(folder, "texts.json", dumps({f"{name}.wav": text for name, text in TEXTS.items()}))


@layout(speakers={"BAC"})
def aishell(folder: Path) -> None:
    clips(folder, "wav/BAC/{}.wav")
    write(folder, "content.csv", lines("wav/BAC/{name}.wav,{text},BAC"))


@layout()
def numbered_lines(folder: Path) -> None:
    clips(folder)
    write(folder, "sentences.txt", lines("{name}. {text}"))


@layout({"talk": LONG}, is_timed=True, speakers={"almaz"})
def csv_with_times(folder: Path) -> None:
    audio(folder, "talk.wav", 8)
    write(folder, "cuts.csv", ["file,begin,stop,satz,wer", *lines("talk.wav,{start},{end},{text},almaz")])


@layout({"talk": LONG}, is_timed=True, speakers={"Almaz"})
def label_studio_regions(folder: Path) -> None:
    audio(folder, "talk.wav", 8)
    result: list[dict[str, object]] = []
    for number, (start, end, text) in enumerate(intervals()):
        times = {"start": start, "end": end}
        result.append({"id": str(number), "value": {**times, "labels": ["Almaz"]}})
        result.append({"id": str(number), "value": {**times, "text": [text]}})
    task = {"data": {"audio": "/data/local-files/?d=raw/talk.wav"}, "annotations": [{"result": result}]}
    write(folder, "project.json", dumps([task]))


def pack_tar(path: Path, files: Mapping[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tar(files, path.suffix.removeprefix(".").removesuffix("tar")))


def tar(files: Mapping[str, bytes], kind: str = "gz") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{kind}") as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return packed.getvalue()


def pack_zip(folder: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder.parent))
    return path


BY_NAME = {layout.name: layout for layout in LAYOUTS}
