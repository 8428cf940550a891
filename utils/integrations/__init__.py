"""Bridges to other programs and sites, one file each; ``utils.core.integrations`` finds them here."""

ENTRY_POINTS = {  # what each offers: module:function
    "add_routes": "xtts_api:add_routes",
    "dub": "dubbing:dub",
    "fit_to_cues": "dubbing:fit_to_cues",
    "listen": "wyoming:Listener",
    "note_corpus": "corpora:note_corpus",
    "pack_ebook_model": "ebook2audiobook:pack_model",
    "push": "hub:push",
    "ray_engine": "ray:RayEngine",
    "read_corpus": "corpora:read_corpus",
    "read_page": "yt_dlp:download",
    "require_token": "hub:require_token",
}
COMMANDS = ("mcp",)
