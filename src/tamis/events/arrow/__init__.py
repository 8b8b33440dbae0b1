"""Events as rows of Arrow: ``rows`` divides what is read, ``columns`` encodes what is not null."""
