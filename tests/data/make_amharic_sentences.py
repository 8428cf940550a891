"""Writes amharic_sentences.txt: the sentences written by hand, every letter of the fidel, and sentences from templates.

Run it from anywhere: ``python tests/data/make_amharic_sentences.py``. The result is always the same.
"""

import itertools
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
BY_HAND = HERE / "amharic_by_hand.txt"
SENTENCES = HERE / "amharic_sentences.txt"

TIMES = "ትናንት|ዛሬ ጠዋት|ሰኞ ዕለት|ባለፈው ሳምንት|ከሰዓት በኋላ|ማታ ላይ|በበዓሉ ቀን|ከሁለት ቀን በፊት|በክረምት|ዓርብ ማታ".split("|")
MEN = "አበበ|ከበደ|ጓደኛዬ|ሐኪሙ|ገበሬው|ነጋዴው|መምህሩ|ፀሐፊው|ጎልማሳው|ሽማግሌው|ዳንኤል|ኃይሉ".split("|")
WOMEN = "አልማዝ|ጽጌ|እህቴ|ሐኪሟ|ነጋዴዋ|መምህሯ|ፀሐፊዋ|ልጅቷ|አሮጊቷ|ሣራ|ወርቅነሽ|ዘነበች".split("|")
PLACES = "ገበያ|ትምህርት ቤት|ጎንደር|ሐረር|ቢሮ|ሆስፒታል|ጫካ|ወንዝ ዳር|ሱቅ|ከተማ|ቤተ ክርስቲያን|አውሮፕላን ማረፊያ".split("|")
THINGS = "መጽሐፍ|ቡና|ዳቦ|ጫማ|ኳስ|ሻይ|እንቁላል|ዣንጥላ|ቲማቲም|ጃኬት|ፓፓያ|ጥቁር ልብስ|ማር|ሰዓት|ጠረጴዛ|ቪዲዮ".split("|")
HE_DID = "ገዛ|ሸጠ|አየ|ፈለገ|አመጣ|ሰጠኝ|ረሳ|ወሰደ|ደበቀ|አገኘ".split("|")
SHE_DID = "ገዛች|ሸጠች|አየች|ፈለገች|አመጣች|ሰጠችኝ|ረሳች|ወሰደች|ደበቀች|አገኘች".split("|")
QUESTIONS = "ለምን|መቼ|እንዴት|ከማን ጋር".split("|")
COUNTED = "ተማሪዎች|ሰዎች|መኪኖች|ዛፎች|ቤቶች|ጋዜጦች|ላሞች|ፎቆች".split("|")


def main() -> None:
    """Write the file."""
    SENTENCES.write_text("\n".join(sentences()) + "\n", encoding="utf-8")


def sentences() -> list[str]:
    """Return every sentence once, in a fixed order."""
    by_hand = BY_HAND.read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys([*by_hand, *spelling(), *stories(), *numbers()]))


def spelling() -> Iterator[str]:
    """Name every letter of the Ethiopic block, as a teacher would."""
    for letter in fidel():
        yield f"{letter} የሚለውን ፊደል በደብተራችሁ ላይ ጻፉ።"


def fidel() -> list[str]:
    """List the letters of the base block: all rows, all orders, the labialised ones too."""
    return [chr(code) for code in range(0x1200, 0x135B) if unicodedata.category(chr(code)) == "Lo"]


def stories() -> Iterator[str]:
    """Tell who did what, where and when; and ask about it."""
    chance = random.Random(2016)
    for people, deeds in ((MEN, HE_DID), (WOMEN, SHE_DID)):
        combinations = list(itertools.product(TIMES, people, PLACES, THINGS, deeds))
        for time, person, place, thing, deed in chance.sample(combinations, 500):
            yield f"{time} {person} {place} ውስጥ {thing} {deed}።"
        for time, person, place, _, deed in chance.sample(combinations, 120):
            yield f"{person} {time} {place} ውስጥ {chance.choice(QUESTIONS)} {deed}?"
        for time, person, place, thing, deed in chance.sample(combinations, 120):
            yield f"{time}፣ {person} ወደ {place} መንገድ ላይ {thing} {deed}፤ ይህንን ሁሉም ሰው ያውቃል!"


def numbers() -> Iterator[str]:
    """Count things, money, years and hours."""
    chance = random.Random(1987)
    for _ in range(120):
        yield f"{chance.choice(PLACES)} ውስጥ {chance.randint(2, 99_999):,} {chance.choice(COUNTED)} አሉ።"
        yield f"{chance.choice(THINGS)} በ{chance.randint(1, 5_000)}.{chance.randint(10, 99)} ብር ተሸጠ።"
        yield f"በ{chance.randint(1800, 2018)} ዓ.ም. {chance.choice(PLACES)} ተሠራ።"
        yield f"ስብሰባው {chance.randint(1, 12)}፡{chance.randint(10, 59)} ላይ ይጀምራል?"


if __name__ == "__main__":
    main()
