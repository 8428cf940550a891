"""Work in gradio's scripts that nobody asked for, left out on the way to the browser.

Each is a place in the gradio that requirements.txt names; in another one it is not found, and the page is only slower.
Together they halve what the browser works until the page stands: docs/log.md.
"""

from typing import NamedTuple


class Mend(NamedTuple):
    """What a script says, and what it says to our visitors."""

    found: str
    instead: str


MENDS = (
    # The whole configuration is watched for changes, though it never changes.
    Mend("R(M,S(G).get_url_config(),!0)", "R(M,S(G).get_url_config())"),
    # Everything is built a second time, right after the first.
    Mend("le(()=>{v(),oe(()=>{O.reload(", "le(()=>{v()&&oe(()=>{O.reload("),
    # For each widget all events are looked through.
    Mend(
        "find_attached_events(e,t){let n=t.filter(t=>t.targets.find(([t])=>t===e.id))"
        ".map(t=>{let n=t.targets.find(([t])=>t===e.id);return n?n[1]:null}).filter(Boolean);",
        "find_attached_events(e,t){"
        "if(this.tied_by!==t){"
        "this.tied_by=t;this.tied=new Map;"
        "for(let{targets:e}of t)for(let[t,n]of new Map([...e].reverse()))"
        "n&&this.tied.set(t,[...this.tied.get(t)??[],n])}"
        "let n=[...this.tied.get(e.id)??[]];",
    ),
    # Each event asks for its widget, found by a walk through all of them, to give it nothing.
    Mend(
        "async set_event_args(e,t){let n={},r=await",
        "async set_event_args(e,t){if(!Object.keys(t).length)return()=>{};let n={},r=await",
    ),
    # After each event the status of every widget is renewed that any event has read, hidden ones too, each found by
    # such a walk: with five tabs at rest that took the browser 2.0 s of every 10, and without 0.35 s.
    Mend(
        "Object.entries(this.loading_stati.current)",
        "Object.entries(this.loading_stati.current).filter(([,e])=>e.show_progress!==`hidden`)",
    ),
)


def mended(script: bytes) -> bytes:
    """Return one of gradio's scripts without the work that nobody asked for."""
    for found, instead in MENDS:
        script = script.replace(found.encode(), instead.encode())
    return script
