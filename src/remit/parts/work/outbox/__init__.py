"""The outbox: the issues of a forge, or of this journal, and the one way in which they are written."""
