"""Files as people read them: below folders that nothing leads out of, decoded, as text, headings and words."""
