"""The help of one recipe or plan: what it does and what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

    from remit.service.recipes import RecipeView


def recipe_help(formatter: click.HelpFormatter, recipe: RecipeView) -> None:
    """Return what a recipe takes."""
    formatter.write_usage("remit run", f"{recipe.name} [--PARAMETER VALUE]... [OPTIONS]")
    if recipe.about:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(recipe.about)
    rows = []
    for parameter in recipe.parameters:
        default = "required" if parameter.default is None else f"default: {parameter.default}"
        rows.append((f"--{parameter.name.replace('_', '-')} {parameter.hint}".rstrip(), default))
    _options(formatter, "Parameters", rows)


def plan_help(formatter: click.HelpFormatter, file: str, plan: Any) -> None:
    """Return what a plan takes."""
    from msgspec import UNSET

    formatter.write_usage("remit run", f"{file} [--INPUT VALUE]... [OPTIONS]")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(plan.description or f"The plan {plan.name}.")
    rows = []
    for name, declared in plan.inputs.items():
        default = "required" if declared.default is UNSET else f"default: {declared.default!r}"
        rows.append(
            (f"--{name} {declared.type}", f"{declared.description}  [{default}]" if declared.description else default)
        )
    _options(formatter, "Inputs", rows)


def _options(formatter: click.HelpFormatter, title: str, rows: list[tuple[str, str]]) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text("`remit run --help` lists the options that every run has.")
