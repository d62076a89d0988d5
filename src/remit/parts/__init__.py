"""The parts: each folder knows the core, none knows another, and the core knows none (rule 17).

What a part brings is the `CAPABILITIES` of its folder; remit.wiring.capabilities finds it there. A Remit without the
folder is a Remit without the part.
"""
