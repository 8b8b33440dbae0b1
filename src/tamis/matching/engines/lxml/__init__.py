"""The engine that hands a document to lxml, for expressions that no other engine takes."""
