from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remit.parts.recipes.evidence import ChosenClaim, EvidencePiece, choose, verified

OTHER = "Nothing in this sentence is about it. The weather is fine today in the hills. Bread is baked from flour."


def piece(text: str, path: str = "notes.md", heading: str = "", start: int = 0) -> EvidencePiece:
    return EvidencePiece(path, "Notes", heading, start, text, f"sha256:{path}")


def chosen(query: str, *pieces: EvidencePiece, max_sources: int = 5) -> list[str]:
    return [claim.plain for claim in choose(query, pieces, max_sources=max_sources)]


def test_the_sentence_that_answers_is_chosen_with_its_place_in_the_file() -> None:
    text = f"{OTHER} A task is cancelled by calling its cancel method. More follows later on."
    [claim] = choose("how to cancel a task", [piece(text, start=1_000)], max_sources=5)
    assert claim.text == "A task is cancelled by calling its cancel method."
    assert text[claim.start - 1_000 : claim.end - 1_000] == claim.text


def test_nothing_is_chosen_where_nothing_is_about_the_question() -> None:
    assert chosen("how to cancel a task", piece(OTHER)) == []
    assert chosen("how to cancel a task") == []
    assert chosen("", piece(OTHER)) == []
    assert chosen("?!", piece(OTHER)) == []


def test_half_of_the_question_must_be_met() -> None:
    text = piece("The tax office answers letters within a week of their arrival.")
    assert chosen("which letters does the tax office answer", text)
    assert chosen("which penguins of the antarctic answer a whistle", text) == []


def test_both_words_of_a_short_question_must_be_met() -> None:
    assert chosen("stop vsock", piece("The service is stopped by the signal that it gets.")) == []


def test_what_a_file_and_section_are_called_counts_as_met() -> None:
    text = "Request that this one cancel itself at once."
    assert chosen("cancel asyncio task", piece(text)) == []
    assert chosen("cancel asyncio task", piece(text, path="asyncio/notes.md", heading="Task")) == [text]
    within = choose("cancel asyncio task", [piece(text, heading="Task")], max_sources=1, folder="asyncio")
    assert [claim.plain for claim in within] == [text]


def test_a_word_that_all_files_are_about_does_not_decide() -> None:
    said = piece("Asyncio is mentioned in this sentence next to a task.", "a.md")
    meant = piece("Request that this task cancel itself at once please.", "b.md")
    [best, *_] = choose("how does asyncio cancel a task", [said, meant], max_sources=2, folder="asyncio")
    assert best.piece == meant


def test_a_name_met_whole_outweighs_its_parts() -> None:
    best = "Wrap lru_cache around the method that is asked so often."
    pieces = [piece("A cache of the lru kind can be found anywhere in the cache.", "a.md"), piece(best, "b.md")]
    assert chosen("lru_cache", *pieces)[0] == best


def test_explanations_come_before_code() -> None:
    code = "def cancel(task):\n    task.cancel(task)\n    # The task is asked to cancel itself here.\n"
    assert chosen("cancel task", piece(code, "a.py"))[0] == "The task is asked to cancel itself here."


def test_a_sentence_that_only_leads_on_comes_after_one_that_says_something() -> None:
    pieces = [piece("You can cancel the task like so:", "a.md"), piece("You can cancel the task like that.", "b.md")]
    assert chosen("cancel task", *pieces)[0].endswith("that.")


def test_at_most_two_sentences_of_a_passage_are_chosen() -> None:
    text = "To cancel a task is easy enough. A task that will cancel others is rare. Never cancel any task by accident."
    assert len(chosen("cancel task", piece(text))) == 2


def test_at_most_so_many_files_are_quoted() -> None:
    colours = ["red", "green", "blue", "white", "black", "brown"]
    pieces = [piece(f"You can cancel the {one} task in a {one} way.", f"{one}.md") for one in colours]
    claims = choose("cancel task", pieces, max_sources=3)
    assert len({claim.piece.path for claim in claims}) == 3


def test_what_was_said_is_not_said_again() -> None:
    again = "A task can be cancelled with the cancel method."
    assert chosen("cancel task", piece(again, "a.md"), piece(again.replace("A task", "The task"), "b.md")) == [again]


def test_a_claim_names_the_definition_it_stands_in() -> None:
    text = (
        'class Task:\n    """A task."""\n\n    def cancel(self):\n        """Request that this task cancel itself."""\n'
    )
    [claim] = choose("cancel a task", [piece(text, "a.py", heading="Task")], max_sources=1)
    assert claim.heading == "cancel"


def test_the_choice_is_the_same_each_time() -> None:
    pieces = [piece(f"You can cancel task {n} of these. {OTHER}", f"{n}.md") for n in range(8)]
    assert choose("cancel task", pieces, max_sources=4) == choose("cancel task", pieces, max_sources=4)


def test_a_quotation_that_is_not_there_is_dropped() -> None:
    source = piece("The task is not cancelled by this.", start=10)
    true = ChosenClaim(source, 10, 44, source.text, source.text, "")
    assert verified([true]) == [true]
    assert verified([true._replace(text="The task is cancelled by this.")]) == []
    assert verified([true._replace(start=11)]) == []
    assert verified([true._replace(start=0, end=34)]) == []
    assert verified([true._replace(text="", start=44)]) == []


@given(
    st.lists(
        st.lists(st.sampled_from(["cancel", "task", "the", "Why.", "\n", "# ", "x=1"]), max_size=30).map(" ".join),
        max_size=4,
    ),
    st.integers(0, 1_000),
)
def test_every_choice_stands_verbatim_where_it_says(texts: list[str], start: int) -> None:
    pieces = [piece(text, f"{n}.py", start=start) for n, text in enumerate(texts)]
    claims = choose("cancel the task", pieces, max_sources=2)
    assert verified(claims) == claims
