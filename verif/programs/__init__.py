"""Parts of the random program generator; the entry is `verif.random_program`."""
