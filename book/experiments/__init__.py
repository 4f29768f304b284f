"""The experiments of the book, and the ledger of what they say of the papers' claims."""
