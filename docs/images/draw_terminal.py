"""Draws what a terminal shows, as PNG.

  python3 draw_terminal.py COLUMNS OUT.png PANE.txt…

Needs Pillow and the font DejaVu Sans Mono. A PANE is the text of a terminal, as
of `tmux capture-pane -p`; several are drawn one below the other.
"""

import pathlib
import sys

from PIL import Image, ImageDraw, ImageFont

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"
SIZE = 15
LINE = 20
MARGIN = 14
GAP = 12
PAPER, INK, BAR = "#1e1f29", "#e6e6e6", "#44475a"


def main():
    columns, out = int(sys.argv[1]), sys.argv[2]
    panes = [pathlib.Path(name).read_text().rstrip("\n ").split("\n")
             for name in sys.argv[3:]]
    font = ImageFont.truetype(FONT, SIZE)
    width = round(columns * font.getlength("0")) + 2 * MARGIN
    height = sum(LINE * len(pane) + 2 * MARGIN for pane in panes)
    height += GAP * (len(panes) - 1)
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    top = 0
    for pane in panes:
        bottom = top + LINE * len(pane) + 2 * MARGIN
        draw.rounded_rectangle((0, top, width - 1, bottom - 1), 8, PAPER, BAR)
        for i, line in enumerate(pane):
            draw.text((MARGIN, top + MARGIN + LINE * i), line.rstrip(), INK, font)
        top = bottom + GAP
    # A few shades are enough for text, and make a small file.
    image.quantize(32).save(out, optimize=True)


main()
