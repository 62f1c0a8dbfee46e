"""Wire formats: questions to a JSON document, a JSON document to checked answers. Pure."""
