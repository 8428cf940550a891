"""The kinds of stems, as bits: what an affix goes with is a sum of kinds.

An imperfective or jussive is one kind for each person's prefix (y, t, 1, n), so that prefix, stem and ending agree.
"""

NAMES = (
    "C", "V", "-a", "-e",  # nouns: ending in a consonant, a vowel, the vowel that a suffix swallows
    "P", "Pa", "Pə",  # perfective: strong, and weak in a or ə
    "Iy", "It", "I1", "In", "Iay", "Iat", "Ia1", "Ian", "Ip",  # imperfective: strong, weak in a, palatal (you, f.)
    "Jy", "Jt", "J1", "Jn", "Jay", "Jat", "Ja1", "Jan", "Jp",  # jussive
    "M", "Ma", "Mp",  # imperative
    "G", "Gp", "N",  # gerund, gerund of I, infinitive
)  # fmt: skip
BITS = {name: 1 << place for place, name in enumerate(NAMES)}
_GROUPS = {
    "P*": "P Pa Pə", "I": "Iy It I1 In", "Ia": "Iay Iat Ia1 Ian", "J": "Jy Jt J1 Jn", "Ja": "Jay Jat Ja1 Jan",
    "I*": "I Ia Ip", "J*": "J Ja Jp", "M*": "M Ma Mp", "G*": "G Gp", "noun": "C V -a -e N",
    "Iy*": "Iy Iay", "It*": "It Iat Ip", "I1*": "I1 Ia1", "In*": "In Ian",
    "Jy*": "Jy Jay", "Jt*": "Jt Jat Jp", "J1*": "J1 Ja1", "Jn*": "Jn Jan", "verb": "P* I* J* M* G*", "any": "noun P*",
}  # fmt: skip


def mask(names: str) -> int:
    """Return the sum of kinds and groups of kinds, written with spaces between them."""
    total = 0
    for name in names.split():
        total |= BITS[name] if name in BITS else mask(_GROUPS[name])
    return total


NOUN, VERB = mask("noun"), mask("verb")
