"""The theme: gradio's own variables from the tokens of the page (``assets/tokens.css``), light and dark."""

import gradio as gr

ETHIOPIC = "Page Ethiopic"  # is served with the page, so that letters look alike everywhere
VARIABLES = {  # each value with the variables that have it
    "var(--ground)": "body_background_fill",
    "var(--sheet)": "background_fill_primary input_background_fill input_background_fill_focus "
    "checkbox_background_color button_secondary_background_fill button_cancel_background_fill",
    "var(--sunken)": "background_fill_secondary button_secondary_background_fill_hover",
    "var(--ink)": "body_text_color block_title_text_color button_secondary_text_color table_text_color",
    "var(--faint)": "body_text_color_subdued block_label_text_color block_info_text_color input_placeholder_color "
    "checkbox_border_color",
    "var(--line)": "border_color_primary input_border_color button_secondary_border_color "
    "button_secondary_border_color_hover button_cancel_border_color",
    "var(--accent)": "border_color_accent input_border_color_focus loader_color link_text_color link_text_color_hover "
    "link_text_color_visited link_text_color_active",
    "var(--accent-deep)": "color_accent button_primary_background_fill checkbox_background_color_selected "
    "checkbox_border_color_selected slider_color",
    "color-mix(in srgb, var(--accent-deep), #000 15%)": "button_primary_background_fill_hover",
    "var(--accent-soft)": "color_accent_soft",
    "var(--loss)": "button_cancel_text_color",
    "var(--loss-soft)": "button_cancel_background_fill_hover error_background_fill",
    "#fff": "button_primary_text_color",
    "transparent": "block_background_fill block_border_color panel_background_fill block_label_background_fill "
    "button_primary_border_color button_primary_border_color_hover checkbox_label_background_fill "
    "checkbox_label_background_fill_selected checkbox_label_background_fill_hover",
    "none": "block_label_shadow shadow_drop shadow_drop_lg",
    "0px": "block_border_width block_padding panel_border_width block_label_border_width checkbox_label_border_width",
    "1px": "input_border_width button_border_width",
    "8px": "block_radius input_radius button_large_radius button_medium_radius button_small_radius",
    "4px": "checkbox_border_radius",
    "16px": "layout_gap form_gap_width",
    "8px 12px": "block_label_padding input_padding",
    "8px 20px": "button_large_padding",
    "6px 12px": "button_small_padding",
    "4px 0px": "checkbox_label_padding",
    "500": "block_title_text_weight button_small_text_weight",
    "var(--t1)": "text_xxs text_xs block_info_text_size",
    "var(--t2)": "text_sm text_md block_label_text_size block_title_text_size input_text_size prose_text_size "
    "button_large_text_size button_small_text_size checkbox_label_text_size",
    "var(--t3)": "text_lg",
    "var(--t4)": "text_xl text_xxl",
}


def theme() -> gr.themes.Base:
    """Make the theme: no frames, no shadows, one radius."""
    made = gr.themes.Base(
        font=("system-ui", "Segoe UI", "Noto Sans", ETHIOPIC, "sans-serif"),
        font_mono=("ui-monospace", "Consolas", "Noto Sans Mono", ETHIOPIC, "monospace"),
    )
    for value, names in VARIABLES.items():
        for name in names.split():
            setattr(made, name, value)
            if hasattr(made, f"{name}_dark"):
                setattr(made, f"{name}_dark", value)
    return made
