"""How well models speak: how well they are understood, whose voice they have, how long they take, what goes wrong.

``evaluate.evaluate`` measures, ``report`` keeps and shows what was measured, ``comparing`` says which differences are
more than chance, and ``blind`` lets people judge who do not know what they hear.
"""
