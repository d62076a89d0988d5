"""The section `[policy]`."""

from typing import Annotated, Literal

import msgspec

from remit.settings.section import About, Section, Tables


class PolicySettings(Section, frozen=True):
    """What may be called by whom."""

    rules: Annotated[
        Tables,
        About(
            "The rules, one `[[policy.rules]]` table each. A JSON array in the environment.",
            entry="remit.policy.rule:RuleTable",
        ),
    ] = ()
    groups: Annotated[
        dict[str, list[str]],
        About('Groups by name: `clerks = ["ann", "bob"]`. In rules `@clerks` stands for its members, people or tools.'),
    ] = msgspec.field(default_factory=dict)
    tests: Annotated[
        Tables,
        About("Tests of the rules, one `[[policy.tests]]` table each; `remit policy test` runs them."),
    ] = ()
    taint: Annotated[
        Literal["ask", "strict", "deny", "allow"],
        About(
            "What to do with an agent's call that writes or executes, if an argument that decides what it reaches "
            "comes from untrusted text and no rule decides; `strict` asks, and looks at every argument."
        ),
    ] = "ask"
    remembered: Annotated[
        bool,
        About("Whether remembered approvals count as rules."),
    ] = True
