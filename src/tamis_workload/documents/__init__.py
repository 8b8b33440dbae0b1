"""Valid documents of a DTD, and a bibliography like DBLP's."""
